package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gothrottle/funnel"
	servers "gothrottle/tests/server"
)

// run is one schedule at work: a master, a replica with the module, a replica without it.
type run struct {
	lab    *lab
	folder string
	stats  *stats
	clock  *servers.Clock
	master *server
	twin   *server // a replica with the module
	plain  *server // a replica without it
	m      *model
	memory int64 // used_memory without overhead at the start
	dump   dump
	lost   *sent  // calls that got no reply
	number int    // of the step
	many   func() // makes calls amid faults, in place of those of the step; or nil
}

// errNotBegun is the error of a run whose servers did not start, and did not end.
var errNotBegun = errors.New("the run did not begin")

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

// newRun makes a run whose servers have not been started.
func newRun(l *lab, st *stats) *run {
	st.tally[numRuns]++
	return &run{lab: l, folder: filepath.Join(l.folder, fmt.Sprint("run", st.tally[numRuns])), stats: st, m: newModel()}
}

// perform runs a schedule on new servers. It returns the first difference, or nil.
func perform(l *lab, s *schedule, st *stats, until time.Time) error {
	r := newRun(l, st)
	return r.perform(len(s.Steps), until, func() { r.begin(s.Options) }, func() { r.do(&s.Steps[r.number]) }, func() {
		r.compare()
		r.emptied()
	})
}

// perform starts servers by begin, makes up to n steps by step until a time, and ends. It returns the first difference.
func (r *run) perform(n int, until time.Time, begin, step, finish func()) error {
	defer r.end()
	begun := false
	err := attempt(func() {
		for begin(); r.number < n && time.Now().Before(until); r.number++ {
			begun = true
			step()
			r.stats.tally[numSteps]++
			r.stats.progress()
		}
		finish()
	})
	ended := false
	for _, s := range r.servers() {
		if err != nil && s.Exited() {
			ended = true
			err = fmt.Errorf("%w; the %s has ended: %s", err, s.name, s.tail())
		}
	}
	if err != nil && !begun && !ended && stepOf(err) < 0 {
		err = errors.Join(errNotBegun, err)
	}
	return err
}

// servers returns the servers that were started.
func (r *run) servers() []*server {
	return slices.DeleteFunc([]*server{r.master, r.twin, r.plain}, func(s *server) bool { return s == nil })
}

// startClock makes the clock of all servers of the run, which does not move by itself.
func (r *run) startClock() {
	clock, err := servers.NewClock(r.lab.folder)
	must(err)
	clock.Mono, r.clock = 1e12, clock
	r.setClock(true, begin)
	r.m.wall, r.m.now = begin, begin
}

func (r *run) setClock(frozen bool, wall int64) {
	r.clock.Frozen = frozen
	r.clock.Set(wall)
}

func (r *run) begin(options []string) {
	r.startClock()
	withModule := append([]string{"--appendonly", "yes", "--loadmodule", r.lab.hostile}, options...)
	r.master = r.start(servers.Options{Args: withModule}, "master")
	r.twin = r.start(servers.Options{Args: withModule}, "replica")
	r.plain = r.start(servers.Options{Args: options, Bare: true}, "bare replica")
	r.attach()
	r.prepare(r.master)
	r.prepare(r.twin)
	r.memory = dataBytes(r.master)
	r.tick()
}

func (r *run) start(o servers.Options, name string) *server {
	o.Folder, o.Clock = filepath.Join(r.folder, name), r.clock
	o.Args = append([]string{"--appendfsync", "always", "--enable-debug-command", "yes", "--databases", fmt.Sprint(databases)}, o.Args...)
	return r.lab.start(name, o)
}

func (r *run) end() {
	for _, s := range r.servers() {
		s.end()
	}
	os.RemoveAll(r.folder)
}

// prepare gives a server that has just started what is not in its data.
func (r *run) prepare(s *server) {
	s.ask("FUNCTION", "LOAD", "REPLACE", library)
	s.ask("CONFIG", "SET", "gothrottle.top-keys", "100", "gothrottle.policies", r.m.policies)
}

func (r *run) do(st *step) {
	start := time.Now()
	defer func() {
		r.say("%s %s: %d calls, %v", st.Do, st.Via, len(st.Calls), time.Since(start).Round(time.Millisecond))
	}()
	if r.master.Exited() {
		r.differ("the master has ended")
	}
	switch st.Do {
	case "calls":
		r.calls(st)
		r.settle()
	case "clock":
		r.move(st.N, st.Mono, r.tick)
	case "foreign":
		r.foreignStep(st)
	default:
		r.fault(st)
	}
}

func (r *run) fault(st *step) {
	f := find(st.Do)
	if f == nil {
		r.differ("no fault has the name %s", st.Do)
	}
	r.stats.tally["fault "+st.Do]++
	f.run(r, st)
	r.settle()
	r.compare()
}

// move moves the wall clock by n µs and the module's monotonic clock by mono µs, and makes the modules see the time by then.
// It passes by the last millisecond of a key, in which calls find the key and the server may delete it.
func (r *run) move(n, mono int64, then func()) {
	for r.m.ends(r.m.wall + funnel.Micros(n)) {
		n += millisecond
	}
	before := int64(r.m.wall / 1000)
	r.clock.Mono += mono
	r.clock.Set(r.clock.Wall + n)
	r.m.wall += funnel.Micros(n)
	if then(); n < 0 {
		r.takeExpired(r.dataset(r.master), before)
	}
}

// catchUp sets the wall clock forward, past the clocks of the modules. A server that starts,
// or becomes the master, does not know what another module's clock showed before. The monotonic clock
// does not move meanwhile: a module's clock that is ahead would go on at half its speed.
func (r *run) catchUp() {
	if lead := int64(max(r.m.now, r.twin.module.Last) - r.m.wall); lead > 0 {
		r.move(lead+second, 0, r.tick)
	}
}

// tick makes the modules see the time: a module's clock moves when a call reads it. The model has the master's.
func (r *run) tick() {
	r.sees(r.master)
	before := r.m.now
	for _, s := range []*server{r.twin, r.master} {
		s.ask("GO.QUOTA_RO", "no-key", "1", "1")
		r.m.now = s.module.Now(r.m.wall, func() funnel.Micros { return funnel.Micros(r.clock.Mono) })
	}
	if r.m.now < before {
		r.m.forget()
	}
}

// sees waits until a server sees the time.
func (r *run) sees(s *server) {
	r.eventually("the server sees the time", func() bool {
		now, err := s.client.Time(ctx).Result()
		return err == nil && now.UnixMicro() == r.clock.Wall
	})
}
