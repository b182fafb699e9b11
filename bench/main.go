// Program bench compares what gothrottle costs with the server's own commands, with the
// ways people limit rates today, and with any other module. It starts its own servers.
// build/bench.sh runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// options say what is measured and for how long.
type options struct {
	server, module, plain, out string // files, and the folder of the report
	peer, peerCmd, peerDenied  string
	command                    string // how the user called us
	allocs                     string // the output of go test -benchmem
	only                       string
	quick                      bool

	depth, conns, rounds, pinnedRounds int
	keys, windowKeys, memoryKeys       int64

	period                                            time.Duration // of the windows
	settle, cpuTime, latencyTime, pinnedTime, aofTime time.Duration
}

func parseOptions() *options {
	o := &options{depth: 32, conns: 50, rounds: 5, pinnedRounds: 5, keys: 100_000, windowKeys: 800, memoryKeys: 1_000_000,
		period: time.Second, settle: 200 * time.Millisecond, cpuTime: 800 * time.Millisecond,
		latencyTime: 500 * time.Millisecond, pinnedTime: 500 * time.Millisecond, aofTime: 300 * time.Millisecond}
	flag.StringVar(&o.server, "server", "", "redis-server or valkey-server")
	flag.StringVar(&o.module, "module", "", "gothrottle.so")
	flag.StringVar(&o.plain, "plain", "", "the module made of plain/plain.c")
	flag.StringVar(&o.out, "out", ".", "where benchmarks.md and the plots go")
	flag.StringVar(&o.command, "command", "make bench", "the command line that the report names")
	flag.BoolVar(&o.quick, "quick", false, "shorter and rougher")
	flag.StringVar(&o.peer, "peer", "", "another module to compare with")
	flag.StringVar(&o.peerCmd, "peer-cmd", "CL.THROTTLE {key} "+rate, "a call of it that is always admitted")
	flag.StringVar(&o.peerDenied, "peer-denied-cmd", "CL.THROTTLE {hot} 0 1 3600", "a call of it that is always denied but the first time")
	flag.StringVar(&o.allocs, "allocs", "", "what go test -bench -benchmem wrote of whole commands")
	flag.StringVar(&o.only, "only", "", "measure only contenders whose name matches this pattern")
	flag.Parse()
	if o.quick { // 125_000 keys fill their tables as much as a million do
		o.rounds, o.pinnedRounds, o.keys, o.windowKeys, o.memoryKeys = 3, 2, 20_000, 200, 125_000
		o.period, o.settle, o.cpuTime, o.latencyTime = 250*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond, 150*time.Millisecond
		o.pinnedTime, o.aofTime = 100*time.Millisecond, 100*time.Millisecond
	}
	return o
}

func main() {
	// The servers are tied to the thread that starts them: this one, which must not end
	// before we do.
	runtime.LockOSThread()
	// The client needs one processor; the other is the server's. It makes little garbage,
	// and makes it between slices.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)

	o := parseOptions()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, o)
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
	list, err := choose(contenders(o), o.only)
	if err != nil {
		return err
	}
	r := newResults(list)
	if r.machine, err = b.describe(); err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", r.machine.line(), o.command)
	began := time.Now()
	for _, phase := range []func(*results) error{b.rounds, b.onOneCPU, b.bytes} {
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

// rounds measures all contenders one after the other, again and again, so that whatever
// else the machine does meets all of them alike.
func (b *bench) rounds(r *results) error {
	p := newProgress(b.options.rounds * len(r.list))
	for round := range b.options.rounds {
		for _, c := range r.list {
			p.step(fmt.Sprintf("round %d of %d: %s", round+1, b.options.rounds, c.name))
			var f figure
			err := b.again(func() (err error) {
				f, err = b.measure(c)
				return err
			})
			if err != nil {
				return err
			}
			r.of[c.name] = append(r.of[c.name], f)
			runtime.GC()
		}
	}
	p.end("rounds")
	return nil
}

// onOneCPU measures some of them with the server free to move and tied to one CPU.
func (b *bench) onOneCPU(r *results) error {
	first, second, ok := twoCPUs(b.cpus)
	if !ok {
		fmt.Println("one CPU only: what the server costs when it is tied to one is not measured")
		return nil
	}
	var pinned []*contender
	for _, c := range r.list {
		if c.pinned {
			pinned = append(pinned, c)
		}
	}
	p := newProgress(b.pinnedRounds * len(pinned))
	for round := range b.pinnedRounds {
		for _, c := range pinned {
			p.step(fmt.Sprintf("server on one CPU, round %d of %d: %s", round+1, b.pinnedRounds, c.name))
			var free, tied float64
			err := b.again(func() (err error) {
				if free, err = b.measurePinned(c, b.cpus, second); err == nil {
					tied, err = b.measurePinned(c, first, second)
				}
				return err
			})
			if err != nil {
				return err
			}
			r.tied[c.name] = append(r.tied[c.name], tied/free)
			runtime.GC()
		}
	}
	p.end("one CPU")
	return nil
}

// bytes measures memory and the append-only file: once, since these do not jitter.
func (b *bench) bytes(r *results) error {
	p := newProgress(2 * len(r.list))
	for _, c := range r.list {
		for _, of := range []struct {
			what    string
			wanted  bool
			values  map[string]float64
			measure func(*contender) (float64, error)
		}{
			{"memory", c.memory, r.memory, b.measureMemory},
			{"append-only file", c.aof, r.aof, b.measureAOF},
		} {
			p.step(of.what + ": " + c.name)
			if !of.wanted {
				continue
			}
			err := b.again(func() (err error) {
				of.values[c.name], err = of.measure(c)
				return err
			})
			if err != nil {
				return err
			}
		}
		runtime.GC()
	}
	p.end("bytes")
	return nil
}

// A progress shows how far a phase is: on a terminal in one line that changes, else in a
// few lines.
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

// allowedCPUs returns the CPUs that this process may use, as taskset takes them.
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
