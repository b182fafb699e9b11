package main

import (
	"fmt"
	"slices"

	"gothrottle/tests/world"
)

type words = world.Words

// step is one part of a run.
type step struct {
	Do    string  // calls, foreign, clock, or the name of a fault
	Via   string  // how calls are sent: plain, multi, eval, replica, parallel
	N     int64   // of a clock: µs that the wall clock is moved; of a fault: µs after which it begins
	Mono  int64   // of a clock: µs that pass
	Text  string  // an argument of a fault
	Calls []words // of calls, of a foreign command, and of faults in the midst of calls
}

// generator makes the steps of a run from a seed.
type generator struct {
	*world.Generator
	wall int64  // µs since the Unix epoch; where the steps have moved the wall clock to
	only string // the fault that each step is; "": steps of all kinds
}

// begin is the wall clock at the start of every run, in µs since the Unix epoch: in 2030.
const begin = 1_900_000_000_000_000

const (
	millisecond = 1000
	second      = 1_000_000
)

// newGenerator returns a generator of steps, which all are this fault if only is not "".
func newGenerator(seed uint64, only string) *generator {
	g := world.NewGenerator(seed, 1)
	g.Holds = true
	return &generator{Generator: g, wall: begin, only: only}
}

// options are arguments of all servers of a run.
func (g *generator) options() []string {
	all := []string{"--hz", world.Pick(g.Rand, "10", "100")}
	if g.IntN(3) == 0 {
		all = append(all, "--io-threads", world.Pick(g.Rand, "2", "3"))
	}
	if g.IntN(2) == 0 {
		all = append(all, "--zset-max-listpack-entries", "16", "--hash-max-listpack-entries", world.Pick(g.Rand, "2", "64"))
	}
	return all
}

// step makes a step: mostly calls, in between clocks, foreign commands and faults.
func (g *generator) step() step {
	switch n := g.IntN(100); {
	case g.only != "" || n >= 94:
		return g.fault()
	case n < 70:
		return g.batch()
	case n < 82:
		return g.clock()
	}
	return step{Do: "foreign", Calls: []words{g.foreign()}}
}

// batch makes calls that are sent together.
func (g *generator) batch() step {
	st := step{Do: "calls", Via: world.Pick(g.Rand, "plain", "plain", "plain", "multi", "multi", "eval", "eval", "parallel", "replica")}
	for range world.Pick(g.Rand, 1, 1, 30, 200, 1+g.IntN(500)) {
		w := g.Call()
		if st.Via == "replica" {
			w = w.ReadOnly()
		}
		st.Calls = append(st.Calls, w)
	}
	return st
}

// clock makes a step of the clocks. One in twelve sets the wall clock back.
func (g *generator) clock() step {
	d := world.Pick(g.Rand, 1, g.Int64N(millisecond), g.Int64N(second), g.Int64N(second), g.Int64N(20*second), g.Int64N(90*second), g.Int64N(4000*second))
	st := step{Do: "clock", N: d, Mono: d}
	switch g.IntN(12) {
	case 0:
		st.N, st.Mono = -world.Pick(g.Rand, g.Int64N(second), g.Int64N(60*second), g.Int64N(3600*second)), g.Int64N(second)
	case 1:
		st.Mono = 0 // the wall clock is set forward
	}
	g.wall += st.N
	return st
}

// foreign makes a command of the server at a key of a limiter.
func (g *generator) foreign() words {
	kind := world.Pick[byte](g.Rand, 't', 'w', 'q', 'l')
	key := g.Name(kind)
	return world.Pick(g.Rand, []words{
		{"DEL", key}, {"UNLINK", key}, {"LPUSH", key, "a"}, {"PERSIST", key},
		{"SET", key, world.Pick(g.Rand, "x", "5", fmt.Sprint(g.wall*1000+g.Int64N(100*second)*1000))},
		{"HSET", g.Name('t'), world.Pick(g.Rand, "0", "x"), "1.5"}, {"HDEL", g.Name('t'), "x"}, {"HINCRBY", g.Name('t'), "0", "1000000"},
		{"ZADD", key, "1", "alice"}, {"ZREM", key, "\x010"}, {"APPEND", g.Name('q'), "1"},
		{"PEXPIREAT", key, fmt.Sprint((g.wall + g.Int64N(100*second)) / 1000)}, {"RENAME", key, g.Name(kind)}, {"COPY", key, g.Name(kind), "REPLACE"},
	}...)
}

// fault makes a fault by the weights of the table.
func (g *generator) fault() step {
	var all []fault
	for _, f := range named(g.only) {
		all = append(all, slices.Repeat([]fault{f}, f.weight)...)
	}
	f := world.Pick(g.Rand, all...)
	st := step{Do: f.name, N: g.Int64N(5 * millisecond)}
	if len(f.texts) > 0 {
		st.Text = world.Pick(g.Rand, f.texts...)
	}
	if f.amid {
		b := g.batch()
		st.Via, st.Calls = b.Via, b.Calls
	}
	return st
}
