package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	servers "gothrottle/tests/server"
)

// numConns is how many clients make calls. Half of them speak RESP3. One of those tracks keys.
const numConns = 4

// run is one schedule at work: a master, a replica with the module, a replica without it.
type run struct {
	lab     *lab
	folder  string
	options []string
	stats   *stats
	clock   *servers.Clock
	runs    bool // the wall clock runs: the server's clock does not stand still with a frozen one
	master  *server
	twin    *server // a replica with the module
	plain   *server // a replica without it
	conns   [numConns]*redis.Client
	m       *model
	evicts  string // maxmemory-policy while memory is short, else ""
	memory  int64  // used_memory without overhead at the start
	dump    dump
	lost    *sent // calls that got no reply
	number  int   // of the step
}

// difference is what a run finds.
type difference struct {
	step int
	what string
}

func (d *difference) Error() string { return fmt.Sprintf("step %d: %s", d.step, d.what) }

// differ ends the run.
func (r *run) differ(format string, args ...any) {
	must(&difference{r.number, fmt.Sprintf(format, args...)})
}

// halt is a panic that ends what attempt runs.
type halt struct{ error }

func must(err error) {
	if err != nil {
		panic(halt{err})
	}
}

// attempt runs f, and returns the error with which must or differ ended it.
func attempt(f func()) (err error) {
	defer func() {
		v := recover()
		if h, ok := v.(halt); ok {
			err = h.error
		} else if v != nil {
			panic(v)
		}
	}()
	f()
	return nil
}

// say prints a line of a step, with the flag -v.
func (r *run) say(format string, args ...any) {
	if *verboseFlag {
		fmt.Printf("step %d: %s\n", r.number, fmt.Sprintf(format, args...))
	}
}

// perform runs a schedule on new servers. It returns the first difference, or nil.
func perform(l *lab, s *schedule, st *stats, until time.Time) error {
	st.runs++
	r := &run{lab: l, folder: filepath.Join(l.folder, fmt.Sprint("run", st.runs)), options: s.Options, stats: st, m: newModel()}
	defer r.end()
	err := attempt(func() {
		r.begin()
		for i := 0; i < len(s.Steps) && time.Now().Before(until); i++ {
			r.number = i
			start := time.Now()
			r.do(&s.Steps[i])
			r.say("%s %s: %d calls, %v", s.Steps[i].Do, s.Steps[i].Via, len(s.Steps[i].Calls), time.Since(start).Round(time.Millisecond))
			st.steps++
			st.progress(s.Seed)
		}
		r.compare()
		r.emptied()
	})
	if err != nil && r.master != nil && r.master.Exited() {
		err = fmt.Errorf("%w; the master has ended: %s", err, r.master.tail())
	}
	return err
}

func (r *run) begin() {
	var err error
	r.clock, err = servers.NewClock(r.lab.folder)
	must(err)
	r.clock.Frozen, r.clock.Wall, r.clock.Mono = true, begin, 1e12
	must(r.clock.Write())
	r.master = r.start("master", "a", false, "--appendonly", "yes")
	r.twin = r.start("replica", "b", false, "--appendonly", "yes")
	r.plain = r.start("bare replica", "c", true)
	r.stats.servers(r.master)
	r.twin.ask("CONFIG", "SET", "gothrottle.top-keys", "100")
	r.findClock()
	r.attach()
	r.prepare(r.master)
	r.memory = dataBytes(r.master)
	r.tick()
}

func (r *run) start(name, folder string, bare bool, args ...string) *server {
	if !bare {
		args = append(args, "--loadmodule", r.lab.hostile)
	}
	args = append([]string{"--appendfsync", "always", "--enable-debug-command", "yes", "--loglevel", "notice", "--databases", fmt.Sprint(databases)}, args...)
	return r.lab.start(name, servers.Options{Bare: bare, Folder: filepath.Join(r.folder, folder), Clock: r.clock, Args: append(args, r.options...)})
}

func (r *run) end() {
	for _, c := range r.conns {
		if c != nil {
			c.Close()
		}
	}
	for _, s := range []*server{r.master, r.twin, r.plain} {
		if s != nil {
			s.Close()
			s.client.Close()
		}
	}
	if r.clock != nil {
		r.clock.Close()
	}
	os.RemoveAll(r.folder)
}

// findClock sets the wall clock. Valkey advances a clock that does not move by the monotonic clock. So
// its clock runs, and calls are made in transactions that also report the time.
func (r *run) findClock() {
	r.runs = r.master.info("server", "valkey_version") != ""
	r.m.wall, r.m.now = begin, begin
	if r.runs {
		r.clock.Frozen, r.clock.Wall = false, begin-time.Now().UnixMicro()
		r.m.blur = blurred
	}
	must(r.clock.Write())
}

// blurred is how far the model may be from a server's clock that runs, in ms: it reads the time before or after a
// command. A busy machine makes the difference longer.
const blurred = 5000

// prepare gives a server that has just started what is not in its data.
func (r *run) prepare(s *server) {
	s.ask("FUNCTION", "LOAD", "REPLACE", library)
	s.ask("CONFIG", "SET", "gothrottle.top-keys", "100", "gothrottle.policies", r.m.policies)
}

// conn returns a client, and connects it if need be.
func (r *run) conn(i int) *redis.Client {
	if r.conns[i] == nil {
		r.conns[i] = r.master.connect(2 + i%2)
		if i == 3 {
			r.conns[i].Do(ctx, "CLIENT", "TRACKING", "ON", "BCAST")
		}
	}
	return r.conns[i]
}

// hangUp closes the clients. They connect again with the next call.
func (r *run) hangUp() {
	for i, c := range r.conns {
		if c != nil {
			c.Close()
		}
		r.conns[i] = nil
	}
}

func (r *run) do(st *step) {
	if r.master.Exited() {
		r.differ("the master has ended")
	}
	switch st.Do {
	case "calls":
		r.calls(st)
		r.settle()
	case "clock":
		r.move(st.N, st.Mono)
	case "foreign":
		r.foreignStep(st)
	default:
		r.fault(st)
	}
}

func (r *run) fault(st *step) {
	i := slices.IndexFunc(faults, func(f fault) bool { return f.name == st.Do })
	if i < 0 {
		r.differ("no fault has the name %s", st.Do)
	}
	r.stats.tally["fault "+st.Do]++
	faults[i].run(r, st)
	r.settle()
	r.compare()
}

// move moves the wall clock by n µs and the module's monotonic clock by mono µs.
func (r *run) move(n, mono int64) {
	r.moveAnd(n, mono, r.tick)
}

// moveAnd moves the clocks, and makes the modules see the time by then.
func (r *run) moveAnd(n, mono int64, then func()) {
	r.look()
	before := int64(r.m.wall / 1000)
	r.clock.Wall += n
	r.clock.Mono += mono
	r.m.wall += funnel.Micros(n)
	must(r.clock.Write())
	if then(); n < 0 {
		r.takeExpired(r.dataset(r.master), before+r.m.blur)
	}
}

// catchUp sets the wall clock forward, past the clocks of the modules. A server that starts,
// or becomes the master, does not know what another module's clock showed before. The monotonic clock
// does not move meanwhile: a module's clock that is ahead would go on at half its speed.
func (r *run) catchUp() {
	r.look()
	if lead := int64(max(r.m.now, r.twin.module.Last) - r.m.wall); lead > 0 {
		r.move(lead+second, 0)
	}
}

// look brings the model's clocks up to date if the wall clock runs.
func (r *run) look() {
	if r.runs {
		r.m.wall = funnel.Micros(time.Now().UnixMicro() + r.clock.Wall)
		r.m.now = max(r.m.now, r.m.wall)
	}
}

// tick makes the modules see the time, and checks what the module's clock shows.
func (r *run) tick() {
	if r.look(); !r.runs {
		r.eventually("the server sees the time", func() bool {
			now, err := r.master.client.Time(ctx).Result()
			return err == nil && now.UnixMicro() == r.clock.Wall
		})
	}
	r.twin.ask("GO.QUOTA_RO", probeKey, "1", "1")
	r.shows(r.twin)
	c := r.master.client.TxPipeline()
	quota := servers.AskClock(c, probeKey)
	if _, err := c.Exec(ctx); err != nil {
		r.differ("the clock's key: %v", err)
	}
	now, want := probed(replyText(quota)), r.shows(r.master)
	if now != want && !r.runs {
		r.differ("the module's clock shows %d, want %d, with the server's clock at %d", now, want, r.m.wall)
	}
	r.m.now = now
}

// shows returns what the module's clock of a server must show.
func (r *run) shows(s *server) funnel.Micros {
	return s.module.Now(r.m.wall, func() funnel.Micros { return funnel.Micros(r.clock.Mono) })
}

// probeKey is a quota by which the module's clock is read.
const probeKey = "clock"

// probed returns the time that the module's clock showed, 0 if it is not known.
func probed(quota string) funnel.Micros { return funnel.Micros(servers.ReadClock(quota)) }
