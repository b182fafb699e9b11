package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	servers "gothrottle/tests/server"
)

// A figure is the result of one contender on one server in one round.
type figure struct {
	cpu            float64 // the server's processor time per op, µs
	rate           float64 // ops per second
	p50, p99, p999 float64 // latency, µs; 0 if not measured
}

// A bench runs slices. A slice measures one contender on a fresh server process.
type bench struct {
	*options
	ctx       context.Context
	cpus      string // the CPUs that this process may use
	disturbed int    // slices that were repeated
}

// A stage is a server process with the script and the connections of one contender.
type stage struct {
	*server
	c     *contender
	o     *options
	sha   string
	keys  int64
	conns []*conn
}

func (b *bench) stage(p product, c *contender, keys int64, cpus string, args ...string) (*stage, error) {
	s, err := launch(b.ctx, p.file, cpus, servers.Options{Module: c.module, Args: args})
	if err != nil {
		return nil, err
	}
	st := &stage{server: s, c: c, o: b.options, keys: keys}
	if c.keys > 0 {
		st.keys = min(keys, c.keys)
	}
	if c.calls > 0 {
		st.keys = b.windowKeys * 95 / c.calls
	}
	if name, value, found := strings.Cut(c.config, " "); found {
		if _, err = s.control.ask("CONFIG", "SET", name, value); err != nil {
			st.leave()
			return nil, err
		}
	}
	if c.script != "" {
		if st.sha, err = s.control.ask("SCRIPT", "LOAD", c.script); err != nil {
			st.leave()
			return nil, err
		}
	}
	if err := st.connect(b.conns); err != nil {
		st.leave()
		return nil, err
	}
	return st, nil
}

func (st *stage) connect(n int) (err error) {
	hangUp(st.conns)
	if st.c.calls > 0 {
		n = min(n, 4) // each connection sends a batch of 32 every few ms
	}
	st.conns, err = dial(st.Addr, n)
	return err
}

func (st *stage) leave() {
	hangUp(st.conns)
	st.stop()
}

// run sends the contender's ops and checks the replies.
func (st *stage) run(depth int, d time.Duration) (tally, error) {
	t, err := st.c.traffic(st.o, st.c.text, st.sha, st.keys, st.o.period)
	if err != nil {
		return tally{}, err
	}
	t.depth, t.judge = depth, st.c.judge
	return t.run(st.conns, d)
}

func (st *stage) runChecked(depth int, d time.Duration) (tally, error) {
	sum, err := st.run(depth, d)
	if err == nil {
		err = st.c.check(sum)
	}
	return sum, err
}

// warm creates the state of the long run: all keys exist, and the windows are as full as
// they get.
func (st *stage) warm(settle time.Duration) error {
	if st.c.calls > 0 || st.c.aged {
		_, err := st.run(st.o.depth, st.o.period*13/10)
		return err
	}
	if err := st.fill(cmp.Or(st.c.warm, st.c.text), max(1, st.c.passes)); err != nil {
		return err
	}
	_, err := st.run(st.o.depth, settle)
	return err
}

func (st *stage) fill(text string, passes int64) error {
	t, err := st.c.traffic(st.o, text, st.sha, st.keys, st.o.period)
	if err == nil {
		_, err = t.fill(st.conns, st.keys*passes)
	}
	if err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	return nil
}

// cpuSlice measures pipelined ops for a time d.
func (st *stage) cpuSlice(d time.Duration, f *figure) error {
	before, err := st.cpu()
	if err != nil {
		return err
	}
	sum, err := st.runChecked(st.o.depth, d)
	if err != nil {
		return err
	}
	after, err := st.cpu()
	f.cpu = (after - before) / float64(sum.ops)
	f.rate = float64(sum.ops) / sum.took.Seconds()
	return err
}

// While latency is measured, 1/latencyPart of the windows are called.
const latencyPart = 4

// latencySlice measures ops without pipelining on many busy connections.
func (st *stage) latencySlice(d time.Duration, f *figure) error {
	hangUp(st.conns)
	var err error
	if st.conns, err = dial(st.Addr, st.o.conns); err != nil {
		return err
	}
	lead := d / 10
	if st.c.calls > 0 {
		// Fewer windows with the same rate per window: slow contenders keep up, too.
		st.keys = max(1, st.keys/latencyPart)
		lead = st.o.period * 11 / 10 // the windows have drained in between
	}
	if _, err := st.run(1, lead); err != nil {
		return err
	}
	sum, err := st.runChecked(1, d)
	if err != nil {
		return err
	}
	slices.Sort(sum.waits)
	at := func(share float64) float64 {
		return float64(sum.waits[int(share*float64(len(sum.waits)))]) / 1e3
	}
	f.p50, f.p99, f.p999 = at(0.5), at(0.99), at(0.999)
	return nil
}

// again repeats a slice after errDisturbed, at most five times, with a pause. It returns other errors at
// once.
func (b *bench) again(slice func() error) error {
	var err error
	for range 6 {
		if err = slice(); !errors.Is(err, errDisturbed) {
			return err
		}
		b.disturbed++
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(b.pause):
		}
	}
	return err
}

// measure returns a contender's figure of one round.
func (b *bench) measure(p product, c *contender) (figure, error) {
	var f figure
	st, err := b.stage(p, c, b.keys, b.cpus)
	if err != nil {
		return f, err
	}
	defer st.leave()
	if err := st.warm(b.settle); err != nil {
		return f, err
	}
	if err := st.cpuSlice(b.cpuTime, &f); err != nil || c.onlyCPU {
		return f, err
	}
	return f, st.latencySlice(b.latencyTime, &f)
}

// measurePinned returns the server's processor time per op in µs, with the server on cpus
// and this process on the CPU client.
func (b *bench) measurePinned(p product, c *contender, cpus, client string) (float64, error) {
	st, err := b.stage(p, c, b.keys, cpus)
	if err != nil {
		return 0, err
	}
	defer st.leave()
	if err := pinSelf(client); err != nil {
		return 0, fmt.Errorf("taskset: %w", err)
	}
	defer pinSelf(b.cpus)
	if err := st.warm(b.settle); err != nil {
		return 0, err
	}
	var f figure
	err = st.cpuSlice(b.pinnedTime, &f)
	return f.cpu, err
}

// memoryAlone closes the connections, which have buffers, and returns used_memory.
func (st *stage) memoryAlone() (float64, error) {
	hangUp(st.conns)
	time.Sleep(5 * time.Millisecond) // the server frees the buffers a little later
	if st.c.calls > 0 {
		return st.number("memory", "used_memory") // at once, because windows drain
	}
	return st.settledMemory()
}

// measureMemory returns bytes per key, of a key after one call or of a full window.
func (b *bench) measureMemory(p product, c *contender) (float64, error) {
	st, err := b.stage(p, c, b.memoryKeys, b.cpus)
	if err != nil {
		return 0, err
	}
	defer st.leave()
	before, err := st.memoryAlone()
	if err != nil {
		return 0, err
	}
	if err := st.connect(b.conns); err != nil {
		return 0, err
	}
	if c.calls > 0 {
		_, err = st.run(b.depth, b.period*13/10)
	} else {
		err = st.fill(cmp.Or(c.filled, c.text), 1)
	}
	if err != nil {
		return 0, err
	}
	after, err := st.memoryAlone()
	if err != nil {
		return 0, err
	}
	if text, err := st.control.ask("DBSIZE"); err != nil || text != fmt.Sprint(st.keys) {
		return 0, fmt.Errorf("%s keys instead of %d (%v)", text, st.keys, err)
	}
	return (after - before) / float64(st.keys), nil
}

// aofKeys is small, so that each key is called often and its expiry is renewed as often as
// in the long run.
const aofKeys = 1000

// measureAOF returns the bytes that an op adds to the append-only file.
func (b *bench) measureAOF(p product, c *contender) (float64, error) {
	st, err := b.stage(p, c, aofKeys, b.cpus, "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")
	if err != nil {
		return 0, err
	}
	defer st.leave()
	if err := st.warm(b.settle); err != nil {
		return 0, err
	}
	before, err := st.number("persistence", "aof_current_size")
	if err != nil {
		return 0, err
	}
	sum, err := st.runChecked(b.depth, b.aofTime)
	if err != nil {
		return 0, err
	}
	after, err := st.number("persistence", "aof_current_size")
	return (after - before) / float64(sum.ops), err
}
