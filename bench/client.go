package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	servers "gothrottle/tests/server"
)

// The loads of the Go client.
var (
	clientGoroutines = []int{1, 16, 256}
	clientKeys       = []int{1, 10_000}
)

const (
	zipfExponent = 1.1
	blockCalls   = 50 // calls of one limiter before the next limiter's turn
)

// hotPace admits all calls of a run. bitingPace denies most of them. A reply that comes 5 ms
// later than another one is worth one unit of bitingPace.
var (
	hotPace    = pace{999_999_999, time.Minute, 1_000_000_000}
	bitingPace = pace{200, time.Second, 500}
)

// A clientRow is what was measured of one contender, one entry for each round.
type clientRow struct {
	Kind             string // load, single or excess
	Name             string
	Goroutines, Keys int

	Rate   []float64 `json:",omitempty"` // decisions per second
	CPU    []float64 `json:",omitempty"` // processor time of the server per decision, µs
	Failed []float64 `json:",omitempty"` // share of the calls that ended with an error

	P50    []float64 `json:",omitempty"` // of a call, µs
	Allocs []float64 `json:",omitempty"` // allocations per call
	Client []float64 `json:",omitempty"` // processor time of this process per call, µs

	Excess []float64 `json:",omitempty"` // units above the limit, in the worst span of time
}

// The kinds of rows.
const (
	loadKind   = "load"
	singleKind = "single"
	excessKind = "excess"
)

// clientAbout says how the rows were measured.
type clientAbout struct {
	Command, Date, Machine, Load string
	Server                       string
	Rounds                       int
	Slice                        float64 // of one load, s
	Seconds                      float64
}

// clientRun is a run of make bench-client.
type clientRun struct {
	clientAbout
	rows []*clientRow
}

// row returns a row. A row that is not there yet is added.
func (c *clientRun) row(kind, name string, goroutines, keys int) *clientRow {
	for _, r := range c.rows {
		if r.Kind == kind && r.Name == name && r.Goroutines == goroutines && r.Keys == keys {
			return r
		}
	}
	c.rows = append(c.rows, &clientRow{Kind: kind, Name: name, Goroutines: goroutines, Keys: keys})
	return c.rows[len(c.rows)-1]
}

// measureClient measures the Go client and others on one server, and writes the figures into
// the page.
func (b *bench) measureClient() error {
	// The client shares the machine with the server, as a service does, and collects garbage.
	runtime.GOMAXPROCS(runtime.NumCPU())
	debug.SetGCPercent(100)
	if strings.Contains(b.servers, ",") {
		return errors.New("the Go client is measured on one server: name one")
	}
	m, err := describe()
	if err != nil {
		return err
	}
	products, err := b.products()
	if err != nil {
		return err
	}
	s, err := launch(b.ctx, b.servers, b.cpus, servers.Options{Module: b.module})
	if err != nil {
		return err
	}
	defer s.stop()
	run := &clientRun{clientAbout: clientAbout{Command: b.command, Date: m.date.UTC().Format("2006-01-02"), Machine: m.line(),
		Load: m.load, Server: products[0].name, Rounds: b.rounds, Slice: b.cpuTime.Seconds()}}
	fmt.Printf("%s\n%s\n%s\n", m.line(), run.Server, b.command)
	began := time.Now()
	shown := newProgress(b.rounds * (len(clientGoroutines)*len(clientKeys) + 2))
	for round := range b.rounds {
		if err := b.clientRound(run, s, func(what string) {
			shown.step(fmt.Sprintf("round %d of %d: %s", round+1, b.rounds, what))
		}); err != nil {
			return err
		}
	}
	shown.end("client")
	run.Seconds = math.Round(time.Since(began).Seconds())
	return run.publish(b.client)
}

// clientRound measures every row once. Contenders of one load follow each other, so a
// disturbance of the machine meets them alike.
func (b *bench) clientRound(run *clientRun, s *server, step func(string)) error {
	for _, keys := range clientKeys {
		for _, goroutines := range clientGoroutines {
			step(fmt.Sprintf("%d goroutines, %d keys", goroutines, keys))
			for _, c := range clientContenders() {
				row := run.row(loadKind, c.name, goroutines, keys)
				if err := b.measureAsks(s, c, goroutines, keys, row); err != nil {
					return fmt.Errorf("%s, %d goroutines, %d keys: %w", c.name, goroutines, keys, err)
				}
			}
		}
	}
	step("one goroutine")
	if err := b.measureSingles(run, s); err != nil {
		return err
	}
	step("excess")
	for _, c := range clientContenders() {
		if err := b.measureExcess(s, c, run.row(excessKind, c.name, slices.Max(clientGoroutines), 1)); err != nil {
			return fmt.Errorf("excess of %s: %w", c.name, err)
		}
	}
	return nil
}

// with opens a contender on an empty server.
func (b *bench) with(s *server, c *clientContender, p pace, use func(limiter) error) error {
	if _, err := s.control.ask("FLUSHALL", "SYNC"); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	l, err := c.open(rdb, p)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(use(l), l.close())
}

// measureAsks measures one load and adds its figures to a row.
func (b *bench) measureAsks(s *server, c *clientContender, goroutines, keys int, row *clientRow) error {
	return b.with(s, c, hotPace, func(l limiter) error {
		visits := visits(keys)
		b.asks(l, c.depth, goroutines, visits, b.settle, nil)
		before, err := s.cpu()
		if err != nil {
			return err
		}
		sum, took := b.asks(l, c.depth, goroutines, visits, b.cpuTime, nil)
		after, err := s.cpu()
		if err != nil {
			return err
		}
		if sum.denied > 0 {
			return fmt.Errorf("%d of %d calls were denied", sum.denied, sum.admitted+sum.denied)
		}
		if sum.admitted == 0 {
			return errors.New("no call was decided")
		}
		row.Rate = append(row.Rate, math.Round(float64(sum.admitted)/took.Seconds()))
		row.CPU = append(row.CPU, rounded((after-before)/float64(sum.admitted)))
		row.Failed = append(row.Failed, rounded(float64(sum.failed)/float64(sum.admitted+sum.failed)))
		return nil
	})
}

var (
	oneVisit   = sync.OnceValue(func() []string { return slices.Repeat([]string{"k0"}, queueDepth) })
	zipfVisits = sync.OnceValue(func() []string { return zipf(clientKeys[len(clientKeys)-1]) })
)

// visits returns the order in which keys are asked for.
func visits(keys int) []string {
	if keys == 1 {
		return oneVisit()
	}
	return zipfVisits()
}

// zipf returns keys by Zipf's law. Their order is the same in each run.
func zipf(keys int) []string {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("k", i)
	}
	law := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), zipfExponent, 1, uint64(keys-1))
	list := make([]string, 1<<17)
	for i := range list {
		list[i] = names[law.Uint64()]
	}
	return list
}

// asks lets goroutines ask for a while. It returns what they were told, and how long it took.
// told, if not nil, is called after each ask.
func (b *bench) asks(l limiter, depth, goroutines int, visits []string, d time.Duration, told func(g int, a answer)) (answer, time.Duration) {
	var stop atomic.Bool
	var all sync.WaitGroup
	sums := make([]answer, goroutines)
	began := time.Now()
	for g := range goroutines {
		all.Go(func() {
			at := g * 4099 * queueDepth % len(visits)
			var sum answer
			for !stop.Load() && b.ctx.Err() == nil {
				if at+depth > len(visits) {
					at = 0
				}
				a := l.ask(context.Background(), visits[at:at+depth])
				at += depth
				sum.add(a)
				if told != nil {
					told(g, a)
				}
			}
			sums[g] = sum
		})
	}
	time.Sleep(d)
	stop.Store(true)
	all.Wait()
	took := time.Since(began)
	var sum answer
	for _, s := range sums {
		sum.add(s)
	}
	return sum, took
}

// measureSingles measures what a call costs one goroutine. The contenders take turns on one
// server, in blocks of a few calls.
func (b *bench) measureSingles(run *clientRun, s *server) error {
	var list []*clientContender
	for _, c := range clientContenders() {
		if slices.Contains(singleNames, c.name) {
			list = append(list, c)
		}
	}
	limiters := make([]limiter, len(list))
	for i, c := range list {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
		defer rdb.Close()
		var err error
		if limiters[i], err = c.open(rdb, hotPace); err != nil {
			return err
		}
		defer limiters[i].close()
	}
	errs := make(chan error)
	go func() { errs <- b.singles(run, list, limiters) }() // the main goroutine is bound to a thread
	return <-errs
}

// singleNames are the contenders that one goroutine compares.
var singleNames = []string{rawDo, uncoalesced, coalesced, redisRate}

func (b *bench) singles(run *clientRun, list []*clientContender, limiters []limiter) error {
	keys := visits(1)[:1]
	took := make([][]float64, len(list))
	runtime.GC()
	for began := time.Now(); time.Since(began) < b.singleTime && b.ctx.Err() == nil; {
		for i := range list {
			for range blockCalls {
				at := time.Now()
				a := limiters[i].ask(context.Background(), keys)
				took[i] = append(took[i], float64(time.Since(at))/1e3)
				if a.denied > 0 { // on a busy machine a call may also end at its time limit
					return fmt.Errorf("%s was denied", list[i].name)
				}
			}
		}
	}
	for i, c := range list {
		row := run.row(singleKind, c.name, 1, 1)
		row.P50 = append(row.P50, rounded(spreadOf(took[i]).median))
		allocs, cpu := b.costs(limiters[i], keys)
		row.Allocs = append(row.Allocs, rounded(allocs))
		row.Client = append(row.Client, rounded(cpu))
	}
	return b.ctx.Err()
}

// costs returns the allocations and the processor time in µs of a call.
func (b *bench) costs(l limiter, keys []string) (allocs, cpu float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	calls, used := 0, ownCPU()
	for began := time.Now(); time.Since(began) < b.cpuTime; calls += blockCalls {
		for range blockCalls {
			l.ask(context.Background(), keys)
		}
	}
	used = ownCPU() - used
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(calls), used / float64(calls)
}

// ownCPU returns the processor time that this process has used, in µs.
func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
