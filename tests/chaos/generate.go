package main

import (
	"math/rand/v2"
	"slices"

	"gothrottle/tests/world"
)

// generator makes the steps of a schedule from a seed.
type generator struct {
	*world.Generator
	wall int64  // µs since the Unix epoch; where the steps have moved the wall clock to
	high int64  // the latest wall
	only string // the fault that each step is; "": steps of all kinds
}

// begin is the wall clock at the start of every run, in µs since the Unix epoch: in 2030.
const begin = 1_900_000_000_000_000

const (
	millisecond = 1000
	second      = 1_000_000
)

// generate makes a schedule of n steps, which all are this fault if only is not "".
func generate(seed uint64, n int, only string) schedule {
	g := &generator{Generator: world.NewGenerator(seed, 1), wall: begin, high: begin, only: only}
	s := schedule{Seed: seed, Options: g.options()}
	s.Steps = append(s.Steps, step{Do: "policies", Text: g.Policies()})
	for len(s.Steps) < n {
		s.Steps = append(s.Steps, g.step())
	}
	return s
}

// options are arguments of all servers of a run.
func (g *generator) options() []string {
	var all []string
	if g.IntN(3) == 0 {
		all = append(all, "--io-threads", world.Pick(g.Rand, "2", "3"))
	}
	if g.IntN(2) == 0 {
		all = append(all, "--zset-max-listpack-entries", "16", "--hash-max-listpack-entries", world.Pick(g.Rand, "2", "64"))
	}
	return append(all, "--hz", world.Pick(g.Rand, "10", "100"))
}

// step makes a step: mostly calls, in between clocks, foreign commands and faults.
func (g *generator) step() step {
	switch n := g.IntN(100); {
	case g.only != "":
		return g.fault()
	case n < 70:
		return g.batch()
	case n < 82:
		return g.clock()
	case n < 94:
		return step{Do: "foreign", Conn: g.IntN(numConns), DB: g.db(), Calls: []words{g.foreign()}}
	}
	return g.fault()
}

func (g *generator) db() int { return world.Pick(g.Rand, 0, 0, 0, 1) }

// batch makes calls that are sent together.
func (g *generator) batch() step {
	st := step{Do: "calls", Conn: g.IntN(numConns), DB: g.db(), N: world.Pick[int64](g.Rand, 0, 0, 1, 2),
		Via: world.Pick(g.Rand, "plain", "plain", "plain", "multi", "multi", "eval", "fcall", "parallel", "replica")}
	for range world.Pick(g.Rand, 1, 1, 30, 200, 1+g.IntN(500)) {
		words := g.Call()
		if st.Via == "replica" {
			words = words.ReadOnly()
		}
		if st.Via != "multi" || !tooFew(words) { // the server would refuse all of them
			st.Calls = append(st.Calls, words)
		}
	}
	if len(st.Calls) == 0 {
		st.Calls = []words{{"GO.INFO", "t0"}}
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
	g.high = max(g.high, g.wall)
	return st
}

// fault makes a fault by the weights of the table.
func (g *generator) fault() step {
	st := drawFault(g.Rand, g.only, func(f *fault) int { return f.weight })
	if st.DB = g.db(); find(st.Do).amid {
		b := g.batch()
		st.Via, st.Calls = b.Via, b.Calls
	}
	return st
}

// find returns the fault of a name, or nil.
func find(name string) *fault {
	if i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name }); i >= 0 {
		return &faults[i]
	}
	return nil
}

// drawFault draws a fault by its weight. If only is not "", it is the fault of that name.
func drawFault(r *rand.Rand, only string, weight func(*fault) int) step {
	var all []*fault
	for i := range faults {
		if f := &faults[i]; only == "" || only == f.name {
			all = append(all, slices.Repeat([]*fault{f}, weight(f))...)
		}
	}
	f := world.Pick(r, all...)
	st := step{Do: f.name, Conn: r.IntN(numConns), N: r.Int64N(5 * millisecond)}
	if len(f.texts) > 0 {
		st.Text = world.Pick(r, f.texts...)
	}
	return st
}
