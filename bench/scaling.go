package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"
)

// A place is servers on which loads are measured: a cluster, or one server.
type place struct {
	name    string
	shards  int    // the masters of the cluster; 0 is one server without cluster mode
	threads string // io-threads
}

// A scaleGroup is places that are compared with each other. Their servers run at the same
// time. Each load is measured at all places, one after another. So a disturbance of the
// machine meets all places alike.
type scaleGroup struct {
	name   string
	places []place
	loads  []scaleLoad
	pinned bool // all servers on one CPU, and the load generator on another
}

// A scaleLoad is one kind of call on a number of keys.
type scaleLoad struct {
	name   string
	text   string // see compile
	keys   int64
	expect int  // admitted or denied
	inTurn bool // the servers are called one after another
	depth  int  // calls that a client sends together; the run's number if 0
}

// The names of the loads and of the places that the report picks out.
const (
	manyKeys  = "many keys"
	inTurn    = "many keys, server after server"
	oneByOne  = "many keys, not pipelined"
	manyTags  = "GO.ALL, 10,000 hash tags"
	fewTags   = "GO.ALL, 10 hash tags"
	oneKey    = "one key"
	oneDenied = "one key, denied"
	splitKey  = "one key, split in 12"
	batchOf10 = "one key, batches of 10"

	alone = "1, no cluster mode"
)

func (b *bench) groups() []scaleGroup {
	all := "GO.ALL {{key}}:a THROTTLE %[1]s KEY {{key}}:b THROTTLE %[1]s KEY {{key}}:c THROTTLE %[1]s"
	many := scaleLoad{name: manyKeys, text: "GO.THROTTLE {key} " + rate, keys: b.keys, expect: admitted}
	turns, single := many, many
	turns.name, turns.inTurn = inTurn, true
	single.name, single.depth = oneByOne, 1
	loads := []scaleLoad{many, turns,
		{name: manyTags, text: fmt.Sprintf(all, rate), keys: 10_000, expect: admitted},
		{name: fewTags, text: fmt.Sprintf(all, hotRate), keys: 10, expect: admitted},
		{name: oneKey, text: "GO.THROTTLE {key} " + hotRate, keys: 1, expect: admitted},
		{name: oneDenied, text: "GO.THROTTLE {key} 0 1 3600", keys: 1, expect: denied},
		{name: splitKey, text: "GO.THROTTLE {key} " + hotRate, keys: 12, expect: admitted},
		{name: batchOf10, text: "GO.THROTTLE {key} " + hotRate + " 10 UPTO", keys: 1, expect: admitted},
	}
	return []scaleGroup{
		{"shards", []place{{alone, 0, "1"}, {"1", 1, "1"}, {"2", 2, "1"}, {"3", 3, "1"}}, loads, true},
		{"I/O threads", []place{{"io-threads 1", 0, "1"}, {"io-threads 2", 0, "2"}, {"io-threads 4", 0, "4"}}, []scaleLoad{many, single}, false},
	}
}

// A scaleRow is what was measured of one load at one place, one entry for each round.
type scaleRow struct {
	Server, Place, Load string

	CPU   []float64 // processor time of all threads of all servers per op, µs
	Main  []float64 // processor time of the main threads of all servers per op, µs
	Top   []float64 // processor time of the busiest main thread per op of the whole load, µs
	Share []float64 // the largest share of the ops that one server got
	Rate  []float64 // ops per second
}

// scalingAbout says how the rows were measured.
type scalingAbout struct {
	Command, Date, Machine, Load string
	Servers                      []string
	Rounds, Conns, Depth         int
	Keys                         int64
	Seconds                      float64
}

// scale measures all places and writes the page and its data.
func (b *bench) scale() error {
	first, second, ok := twoCPUs(b.cpus)
	if !ok {
		return errors.New("two CPUs are needed: one for the servers and one for the load generator")
	}
	m, err := describe()
	if err != nil {
		return err
	}
	products, err := b.products()
	if err != nil {
		return err
	}
	s := &scaling{scalingAbout: scalingAbout{Command: b.command, Date: m.date.UTC().Format("2006-01-02"), Machine: m.line(), Load: m.load,
		Rounds: b.rounds, Conns: b.conns, Depth: b.depth, Keys: b.keys}}
	for _, p := range products {
		s.Servers = append(s.Servers, p.name)
	}
	fmt.Printf("%s\n%s\n%s\n", m.line(), strings.Join(s.Servers, ", "), b.command)
	began := time.Now()
	order := schedule(b.rounds, len(products), b.groups())
	shown := newProgress(len(order))
	for _, o := range order {
		p := products[o.server]
		shown.step(fmt.Sprintf("round %d of %d: %s, %s", o.round+1, b.rounds, o.row.name, p.name))
		if err := b.measureGroup(s, p, o.row, first, second); err != nil {
			return fmt.Errorf("%s on %s: %w", o.row.name, p.name, err)
		}
		runtime.GC()
	}
	shown.end("scaling")
	s.Seconds = math.Round(time.Since(began).Seconds())
	return s.publish(b.scaling)
}

// measureGroup starts the servers of a group and measures its loads.
func (b *bench) measureGroup(s *scaling, p product, g scaleGroup, server, client string) error {
	cpus := b.cpus
	if g.pinned {
		cpus = server
	}
	var fleets []*fleet
	for _, at := range g.places {
		f, err := b.fleet(p.file, at.shards, cpus, "--io-threads", at.threads)
		if err != nil {
			return err
		}
		defer f.leave()
		fleets = append(fleets, f)
	}
	if g.pinned {
		if err := pinSelf(client); err != nil {
			return fmt.Errorf("taskset: %w", err)
		}
		defer pinSelf(b.cpus)
	}
	for _, l := range g.loads {
		for i, at := range g.places {
			if err := b.measureLoad(fleets[i], l, s.row(p.name, at.name, l.name)); err != nil {
				return fmt.Errorf("%s, %s: %w", at.name, l.name, err)
			}
		}
	}
	return nil
}

// measureLoad measures one load on empty servers and adds its figures to a row.
func (b *bench) measureLoad(f *fleet, l scaleLoad, row *scaleRow) error {
	for _, s := range f.servers {
		if _, err := s.control.ask("FLUSHALL", "SYNC"); err != nil {
			return err
		}
	}
	o, err := compile(l.text, nil)
	if err != nil {
		return err
	}
	t := &traffic{op: o, keys: l.keys, depth: cmp.Or(l.depth, b.depth), judge: judgeFlag}
	to := f.targets(l.keys, l.inTurn)
	if err := f.fill(t, to); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	if _, err := f.run(t, to, b.settle); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	before, err := f.reading()
	if err != nil {
		return err
	}
	sum, err := f.run(t, to, b.cpuTime)
	if err != nil {
		return err
	}
	after, err := f.reading()
	if err != nil {
		return err
	}
	row.add(before, after, sum)
	return (&contender{expect: l.expect}).check(sum)
}

// A reading is what one server has done so far.
type reading struct {
	cpu, main float64 // processor time of all threads and of the main thread, µs
	ops       int64   // ops sent to the server
}

func (f *fleet) reading() ([]reading, error) {
	var list []reading
	for i, s := range f.servers {
		fields, err := s.info("cpu")
		if err != nil {
			return nil, err
		}
		var r reading
		if r.cpu, err = cpuIn(fields, ""); err != nil {
			return nil, err
		}
		if r.main, err = cpuIn(fields, "_main_thread"); err != nil {
			return nil, err
		}
		for _, client := range f.clients {
			r.ops += client[i].ops
		}
		list = append(list, r)
	}
	return list, nil
}

// add appends the figures of one round.
func (row *scaleRow) add(before, after []reading, sum tally) {
	var cpu, main, top float64
	var most int64
	for i, r := range after {
		cpu += r.cpu - before[i].cpu
		main += r.main - before[i].main
		top = max(top, r.main-before[i].main)
		most = max(most, r.ops-before[i].ops)
	}
	ops := float64(sum.ops)
	row.CPU = append(row.CPU, rounded(cpu/ops))
	row.Main = append(row.Main, rounded(main/ops))
	row.Top = append(row.Top, rounded(top/ops))
	row.Share = append(row.Share, rounded(float64(most)/ops))
	row.Rate = append(row.Rate, math.Round(ops/sum.took.Seconds()))
}

// rounded keeps four digits after the point.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }
