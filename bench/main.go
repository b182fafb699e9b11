// Program bench measures what calls of gothrottle cost. It compares them with the server's
// own commands, with limiters in Lua and MULTI, and with any other module. It starts its own
// servers. build/bench.sh runs it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options say what is measured and for how long.
type options struct {
	servers                   string // programs, separated by commas, in the order of the columns
	module, plain             string // files
	out                       string // the folder of the report
	peer, peerCmd, peerDenied string
	command                   string // the user's command line
	allocs                    string // a file with the output of go test -benchmem
	only                      string
	quick                     bool
	scaling, client           string // the page to write figures into; "" for both measures single calls

	depth, conns, rounds         int
	keys, windowKeys, memoryKeys int64

	period                                            time.Duration // the period of the windows
	settle, cpuTime, latencyTime, pinnedTime, aofTime time.Duration
	singleTime                                        time.Duration // of all contenders that one goroutine compares
	pause                                             time.Duration // after a disturbance
}

// newOptions returns the defaults. Memory is measured with 125,000 keys. They fill the tables
// of a server to 95 %, as a million keys do.
func newOptions() *options {
	return &options{depth: 32, conns: 50, rounds: 5, keys: 100_000, windowKeys: 800, memoryKeys: 125_000,
		period: time.Second, settle: 100 * time.Millisecond, cpuTime: 500 * time.Millisecond,
		latencyTime: 300 * time.Millisecond, pinnedTime: 300 * time.Millisecond, aofTime: 300 * time.Millisecond, pause: time.Second}
}

// shorten makes a run shorter and less exact.
func (o *options) shorten() {
	o.rounds, o.keys, o.windowKeys = 2, 20_000, 200
	o.period, o.settle, o.cpuTime, o.latencyTime = 250*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond, 150*time.Millisecond
	o.pinnedTime, o.aofTime, o.singleTime = 100*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond
}

func parseOptions() (*options, error) {
	o := newOptions()
	rounds := flag.Int("rounds", 0, "the number of rounds; 0 is the default: 5, or 2 with -quick")
	flag.StringVar(&o.servers, "servers", "", "redis-server and valkey-server programs, separated by commas")
	flag.StringVar(&o.module, "module", "", "gothrottle.so")
	flag.StringVar(&o.plain, "plain", "", "the module built from plain/plain.c")
	flag.StringVar(&o.out, "out", ".", "the folder for benchmarks.md and the plots")
	flag.StringVar(&o.command, "command", "make bench", "the command line that the report names")
	flag.BoolVar(&o.quick, "quick", false, "shorter and less exact")
	flag.StringVar(&o.scaling, "scaling", "", "measure clusters and I/O threads instead, and write the figures into this page")
	flag.StringVar(&o.client, "client", "", "measure the Go client instead, and write the figures into this page")
	flag.StringVar(&o.peer, "peer", "", "another module to compare with")
	flag.StringVar(&o.peerCmd, "peer-cmd", "CL.THROTTLE {key} "+rate, "a call that the other module always admits")
	flag.StringVar(&o.peerDenied, "peer-denied-cmd", "CL.THROTTLE {hot} 0 1 3600", "a call that the other module denies, except the first one")
	flag.StringVar(&o.allocs, "allocs", "", "the output of go test -bench -benchmem for whole commands")
	flag.StringVar(&o.only, "only", "", "measure only rows whose name matches this regular expression")
	flag.Parse()
	if *rounds < 0 {
		return nil, fmt.Errorf("%d rounds: at least 1 is needed", *rounds)
	}
	if o.scaling != "" {
		o.settle, o.cpuTime = 50*time.Millisecond, 300*time.Millisecond // there are many more slices
	}
	if o.client != "" {
		o.settle, o.cpuTime, o.singleTime = 100*time.Millisecond, 400*time.Millisecond, 2*time.Second
	}
	if o.quick {
		o.shorten()
	}
	o.rounds = cmp.Or(*rounds, o.rounds)
	return o, nil
}

func main() {
	// The client uses one processor. The other one is for the server. The client makes
	// little garbage and collects it between slices.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := parseOptions()
	if err == nil {
		err = run(ctx, o)
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nbench: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	b := &bench{options: o, ctx: ctx, cpus: cpus}
	if o.scaling != "" {
		return b.scale()
	}
	if o.client != "" {
		return b.measureClient()
	}
	list, worst, err := choose(contenders(o), worstCases(), o.only)
	if err != nil {
		return err
	}
	m, err := describe()
	if err != nil {
		return err
	}
	products, err := b.products()
	if err != nil {
		return err
	}
	r := newResults(list, worst, products)
	r.machine = m
	fmt.Printf("%s\n%s\n%s\n", m.line(), r.serverNames(), o.command)
	began := time.Now()
	for _, phase := range []func(*results) error{b.measureRounds, b.measureOneCPU, b.measureBytes, b.measureWorst} {
		if err := phase(r); err != nil {
			return err
		}
	}
	if r.allocs, r.allocsOf, err = readAllocs(o.allocs); err != nil {
		return err
	}
	r.took = time.Since(began)
	return b.report(r)
}

// choose returns the contenders and the worst cases whose names match a pattern.
func choose(list []*contender, worst []*worstCase, pattern string) ([]*contender, []*worstCase, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(c *contender) bool { return !names.MatchString(c.name) })
	worst = slices.DeleteFunc(worst, func(w *worstCase) bool { return !names.MatchString(w.name) })
	if len(list) == 0 && len(worst) == 0 {
		return nil, nil, fmt.Errorf("no row is called %q", pattern)
	}
	return list, worst, nil
}

// A slot is one row measured on one server in one round.
type slot[T any] struct {
	round, server int
	row           T
}

// schedule returns the order of the slots. Each round goes through the rows, and each row
// goes through the servers. So a disturbance of the machine meets all rows and all servers
// alike.
func schedule[T any](rounds, servers int, rows []T) []slot[T] {
	var slots []slot[T]
	for round := range rounds {
		for _, row := range rows {
			for server := range servers {
				slots = append(slots, slot[T]{round, server, row})
			}
		}
	}
	return slots
}

// measureAll calls measure for all slots in their order.
func measureAll[T any](b *bench, r *results, phase string, rounds int, rows []T, name func(T) string, measure func(row T, on *figures) error) error {
	slots := schedule(rounds, len(r.on), rows)
	p := newProgress(len(slots))
	for _, s := range slots {
		on := r.on[s.server]
		p.step(fmt.Sprintf("%s, round %d of %d: %s, %s", phase, s.round+1, rounds, name(s.row), on.name))
		if err := b.again(func() error { return measure(s.row, on) }); err != nil {
			return fmt.Errorf("%s on %s: %w", name(s.row), on.name, err)
		}
		runtime.GC()
	}
	p.end(phase)
	return nil
}

func nameOf(c *contender) string { return c.name }

// measureRounds measures processor time and latency of all contenders.
func (b *bench) measureRounds(r *results) error {
	return measureAll(b, r, "calls", b.rounds, r.list, nameOf, func(c *contender, on *figures) error {
		f, err := b.measure(on.product, c)
		if err == nil {
			on.of[c.name] = append(on.of[c.name], f)
		}
		return err
	})
}

// measureOneCPU measures pinned contenders twice: with the server free to move and with the
// server tied to one CPU.
func (b *bench) measureOneCPU(r *results) error {
	first, second, ok := twoCPUs(b.cpus)
	if !ok {
		fmt.Println("This process may use one CPU only. The rows about a server on one CPU are not measured.")
		return nil
	}
	var pinned []*contender
	for _, c := range r.list {
		if c.pinned {
			pinned = append(pinned, c)
		}
	}
	return measureAll(b, r, "one CPU", b.rounds, pinned, nameOf, func(c *contender, on *figures) error {
		free, err := b.measurePinned(on.product, c, b.cpus, second)
		if err != nil {
			return err
		}
		tied, err := b.measurePinned(on.product, c, first, second)
		if err == nil {
			on.tied[c.name] = append(on.tied[c.name], tied/free)
		}
		return err
	})
}

// measureBytes measures memory and the append-only file. One round is enough: these
// figures hardly vary.
func (b *bench) measureBytes(r *results) error {
	return measureAll(b, r, "bytes", 1, r.list, nameOf, func(c *contender, on *figures) (err error) {
		if c.memory {
			if on.memory[c.name], err = b.measureMemory(on.product, c); err != nil {
				return err
			}
		}
		if c.aof {
			on.aof[c.name], err = b.measureAOF(on.product, c)
		}
		return err
	})
}

// A progress shows how far a phase is. On a terminal it is one line that changes, else
// about eight lines.
type progress struct {
	steps, done int
	began       time.Time
	terminal    bool
}

func newProgress(steps int) *progress {
	info, err := os.Stderr.Stat()
	return &progress{steps: steps, began: time.Now(), terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (p *progress) step(what string) {
	switch {
	case p.terminal:
		fmt.Fprintf(os.Stderr, "\r\x1b[K[%3d %%] %s", 100*p.done/p.steps, what)
	case p.done == 0 || 8*p.done/p.steps != 8*(p.done-1)/p.steps:
		fmt.Fprintf(os.Stderr, "[%3d %%] %s\n", 100*p.done/p.steps, what)
	}
	p.done++
}

func (p *progress) end(what string) {
	if p.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	fmt.Fprintf(os.Stderr, "[100 %%] %s: %.0f s\n", what, time.Since(p.began).Seconds())
}

// allowedCPUs returns the CPUs that this process may use, listed in taskset's form.
func allowedCPUs() (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(status), "Cpus_allowed_list:")
	if !found {
		return "", errors.New("the kernel does not tell which CPUs may be used")
	}
	list, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(list), nil
}

// twoCPUs picks two CPUs of a list such as 0-1,4.
func twoCPUs(list string) (first, second string, ok bool) {
	var found []int
	for span := range strings.SplitSeq(list, ",") {
		var from, to int
		if n, _ := fmt.Sscanf(span, "%d-%d", &from, &to); n < 2 {
			to = from
		}
		for cpu := from; cpu <= to; cpu++ {
			found = append(found, cpu)
		}
	}
	if len(found) < 2 {
		return "", "", false
	}
	return fmt.Sprint(found[0]), fmt.Sprint(found[1]), true
}
