package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// run is steps at work: a master, a replica with the module, a replica without it.
type run struct {
	folder string
	tally  map[string]int
	clock  *servers.Clock
	master *server
	twin   *server // a replica with the module
	plain  *server // a replica without it
	m      *model
	lost   *sent // calls that got no reply
	number int   // of the step
}

// differ ends the run.
func (r *run) differ(format string, args ...any) {
	must(fmt.Errorf("step %d: %s", r.number, fmt.Sprintf(format, args...)))
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

// newRun makes a run whose servers have not been started.
func newRun(tally map[string]int) *run {
	tally["runs"]++
	r := &run{folder: filepath.Join(os.TempDir(), fmt.Sprint("run", tally["runs"])), tally: tally, m: &model{}}
	r.m.clear()
	return r
}

// perform makes the steps of a seed on new servers. It returns the first difference, or another error, or nil.
func perform(ctx context.Context, seed uint64, tally map[string]int) error {
	r, g := newRun(tally), newGenerator(seed, *onlyFlag)
	begin := func() {
		r.begin(g.options())
		r.configure(g.Policies(), r.master, r.twin)
	}
	step := func() {
		st := g.step()
		r.do(&st)
	}
	return r.perform(ctx, begin, step, r.compare)
}

// perform starts servers by begin, makes steps by step until its context ends, and ends. It returns the first difference, or another
// error.
func (r *run) perform(ctx context.Context, begin, step, finish func()) error {
	defer r.end()
	err := attempt(func() {
		for begin(); r.number < *stepsFlag && ctx.Err() == nil; r.number++ {
			step()
			r.tally["steps"]++
		}
		finish()
	})
	for _, s := range r.servers() {
		if err != nil && s.Exited() {
			err = fmt.Errorf("%w; the %s has ended: %s", err, s.name, s.tail())
		}
	}
	return err
}

// servers returns the servers that were started.
func (r *run) servers() []*server {
	return slices.DeleteFunc([]*server{r.master, r.twin, r.plain}, func(s *server) bool { return s == nil })
}

// startClock makes the clock of all servers of the run, which does not move by itself.
func (r *run) startClock() {
	clock, err := servers.NewClock(os.TempDir())
	must(err)
	clock.Mono, clock.Frozen, r.clock = 1e12, true, clock
	r.clock.Set(begin)
	r.m.wall, r.m.now = begin, begin
}

func (r *run) begin(options []string) {
	r.startClock()
	withModule := append([]string{"--appendonly", "yes"}, options...)
	r.master = r.start("master", servers.Options{Args: withModule})
	r.twin = r.start("replica", servers.Options{Args: withModule})
	r.plain = r.start("bare replica", servers.Options{Args: options, Bare: true})
	r.attach()
	r.prepare(r.master)
	r.prepare(r.twin)
	r.tick()
}

func (r *run) end() {
	for _, s := range r.servers() {
		s.client.Close()
		s.Close()
	}
	if r.clock != nil {
		r.clock.Close()
	}
	os.RemoveAll(r.folder)
}

// prepare gives a server that has just started what is not in its data.
func (r *run) prepare(s *server) {
	s.ask("CONFIG", "SET", "gothrottle.top-keys", "100", "gothrottle.policies", r.m.policies)
}

func (r *run) do(st *step) {
	switch st.Do {
	case "calls":
		r.calls(st)
		r.settle()
	case "clock":
		r.move(st.N, st.Mono, r.tick)
	case "foreign":
		r.foreign(st)
	default:
		r.fault(st)
	}
}

func (r *run) fault(st *step) {
	all := named(st.Do)
	if len(all) == 0 {
		r.differ("no fault has the name %s", st.Do)
	}
	r.tally["fault "+st.Do]++
	all[0].run(r, st)
	r.settle()
	r.compare()
}

// foreign makes a command of the server at keys of limiters. Before it, the keys hold what the model holds. After it, the
// model holds what they hold.
func (r *run) foreign(st *step) {
	w := st.Calls[0]
	r.holds(r.dataset(r.master))
	if r.master.ask(corpus.Args(w)...) == lost {
		r.differ("%q: no reply", w)
	}
	r.tally["foreign commands"]++
	held := r.dataset(r.master)
	for _, name := range w[1:min(3, len(w))] {
		r.m.Put(name, held[name])
	}
}

// move moves the wall clock by n µs and the module's monotonic clock by mono µs, and makes the modules see the time by then.
// It passes by the last millisecond of a key, in which calls find the key and the server may delete it. The
// server may also have deleted keys that had expired before the clock was set back: the model takes what it holds of these.
func (r *run) move(n, mono int64, then func()) {
	for r.m.ends(r.m.wall + funnel.Micros(n)) {
		n += millisecond
	}
	before := int64(r.m.wall) / 1000
	r.clock.Mono += mono
	r.clock.Set(r.clock.Wall + n)
	r.m.wall += funnel.Micros(n)
	if then(); n >= 0 {
		return
	}
	held := r.dataset(r.master)
	for name, v := range r.m.all(held) {
		if v.Expire > 0 && v.Expire <= before {
			r.m.Put(name, held[name])
		}
	}
}

// catchUp sets the wall clock forward, past the clocks of the modules. A server that starts, or becomes the master, does not
// know what another module's clock showed before. The monotonic clock does not move meanwhile: a module's clock that is ahead
// would go on at half its speed.
func (r *run) catchUp() {
	if lead := int64(max(r.m.now, r.twin.module.Last) - r.m.wall); lead > 0 {
		r.move(lead+second, 0, r.tick)
	}
}

// tick makes the modules see the time: a module's clock moves when a call reads it. The model has the master's.
func (r *run) tick() {
	r.sees(r.master)
	for _, s := range []*server{r.twin, r.master} {
		s.ask("GO.QUOTA_RO", "no-key", "1", "1")
		r.m.now = s.module.Now(r.m.wall, func() funnel.Micros { return funnel.Micros(r.clock.Mono) })
	}
}

// sees waits until a server sees the time.
func (r *run) sees(s *server) {
	r.eventually("the server sees the time", func() bool {
		now, err := s.client.Time(ctx).Result()
		return err == nil && now.UnixMicro() == r.clock.Wall
	})
}

func (r *run) eventually(what string, ok func() bool) {
	if err := servers.Await(what, ok); err != nil {
		r.differ("%v; master: %s; replica: %s", err, r.master.tail(), r.twin.tail())
	}
}

// accept sends a command that must be accepted.
func (r *run) accept(s *server, words ...any) {
	if reply := s.ask(words...); !strings.HasPrefix(strings.TrimLeft(reply, `"`), "OK") {
		r.differ("%v: %s", words, reply)
	}
}
