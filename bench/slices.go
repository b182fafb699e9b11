package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A figure is one measure of one contender in one round.
type figure struct {
	cpu            float64 // µs of the server per op
	rate           float64 // ops per second
	p50, p99, p999 float64 // µs; 0 if not measured
}

// A bench runs slices: one contender on a server of its own.
type bench struct {
	*options
	ctx       context.Context
	cpus      string // those that this process may use
	disturbed int    // slices that were repeated
}

// A stage is a server with one contender's script and connections.
type stage struct {
	*server
	c     *contender
	o     *options
	sha   string
	keys  int64
	conns []*conn
}

func (b *bench) stage(c *contender, keys int64, cpus string, args ...string) (*stage, error) {
	if c.module != "" {
		args = append(args, "--loadmodule", c.module)
	}
	s, err := launch(b.ctx, b.server, cpus, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	st := &stage{server: s, c: c, o: b.options, keys: keys}
	if c.keys > 0 {
		st.keys = min(keys, c.keys)
	}
	if c.calls > 0 {
		st.keys = b.windowKeys * 95 / c.calls
	}
	if c.script != "" {
		if st.sha, err = s.control.ask("SCRIPT", "LOAD", c.script); err != nil {
			st.leave()
			return nil, fmt.Errorf("%s: %w", c.name, err)
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
		n = min(n, 4) // few enough for a batch of 32 every few ms
	}
	st.conns, err = dial(st.addr, n)
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
	sum, err := t.run(st.conns, d)
	if err != nil {
		return sum, fmt.Errorf("%s: %w", st.c.name, err)
	}
	return sum, nil
}

func (st *stage) runChecked(depth int, d time.Duration) (tally, error) {
	sum, err := st.run(depth, d)
	if err == nil {
		err = st.c.check(sum)
	}
	return sum, err
}

// warm makes the state that the contender meets in the long run: all keys are there, and
// windows are as full as they will be.
func (st *stage) warm(settle time.Duration) error {
	if st.c.calls > 0 {
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
		return fmt.Errorf("%s, filling: %w", st.c.name, err)
	}
	return nil
}

// cpuSlice measures pipelined ops on a warm server.
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

// latencyPart is which part of the windows is called while latency is measured.
const latencyPart = 4

// latencySlice measures ops one by one, on the connections of a busy service.
func (st *stage) latencySlice(d time.Duration, f *figure) error {
	hangUp(st.conns)
	var err error
	if st.conns, err = dial(st.addr, st.o.conns); err != nil {
		return err
	}
	lead := d / 10
	if st.c.calls > 0 {
		// Fewer windows, called as often each: a rate that a slow server keeps up with too.
		st.keys = max(1, st.keys/latencyPart)
		lead = st.o.period * 11 / 10 // they drained while nobody called
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

// again repeats a slice whose windows were not full because of a disturbance. Other errors
// are final, and so is the last.
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
		case <-time.After(time.Second):
		}
	}
	return err
}

// measure is one contender's part of a round.
func (b *bench) measure(c *contender) (figure, error) {
	var f figure
	st, err := b.stage(c, b.keys, b.cpus)
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

// measurePinned returns the cost per op with the server on the given CPUs and this
// process on another.
func (b *bench) measurePinned(c *contender, cpus, client string) (float64, error) {
	st, err := b.stage(c, b.keys, cpus)
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

// memoryAlone returns used_memory without connections and their buffers.
func (st *stage) memoryAlone() (float64, error) {
	hangUp(st.conns)
	time.Sleep(5 * time.Millisecond) // the server frees them in its own time
	if st.c.calls > 0 {
		return st.number("memory", "used_memory") // at once, or windows drain
	}
	return st.settledMemory()
}

// measureMemory returns bytes per key: of a key with one call, or of a full window.
func (b *bench) measureMemory(c *contender) (float64, error) {
	st, err := b.stage(c, b.memoryKeys, b.cpus)
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
		return 0, fmt.Errorf("%s: %s keys instead of %d (%v)", c.name, text, st.keys, err)
	}
	return (after - before) / float64(st.keys), nil
}

// aofKeys is so few that each is called often enough for its expiry to be renewed as in
// the long run.
const aofKeys = 1000

// measureAOF returns how many bytes an op adds to the append-only file.
func (b *bench) measureAOF(c *contender) (float64, error) {
	st, err := b.stage(c, aofKeys, b.cpus, "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")
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
