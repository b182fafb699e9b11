package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// A flood makes far more calls than a model could follow. Nobody looks at the replies. The servers must live, and a master and
// its replicas must hold the same.

const (
	floodCalls = 2000 // drawn by a step
	floodTimes = 25   // how often a step makes them
	floodEnd   = "end-of-the-calls"
)

// performFlood runs a flood on new servers. It returns the first difference.
func performFlood(l *lab, seed uint64, st *stats, until time.Time) error {
	r := newRun(l, st)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2)), wall: begin, high: begin}
	start := func() {
		r.begin(nil)                                      // I/O threads spin while others need the processor
		r.master.ask("CONFIG", "SET", "appendonly", "no") // most of the time would go to the disk
		r.twin.ask("CONFIG", "SET", "appendonly", "no")
	}
	return r.perform(*stepsFlag, until, start, func() { r.flood(g) }, func() {
		r.floodCopies()
		r.emptied()
	})
}

// flood sends calls at once, and waits for the replies.
func (r *run) flood(g *generator) {
	var calls []byte
	for range floodCalls {
		calls = appendCall(calls, g.call())
	}
	calls = appendCall(calls, words{"ECHO", floodEnd})
	c, err := net.Dial("tcp", r.master.Addr)
	must(err)
	defer c.Close()
	go func() {
		for range floodTimes {
			_, _ = c.Write(calls) // a failure shows in what is read
		}
	}()
	for replies, ends := bufio.NewScanner(c), 0; ends < floodTimes; {
		if !replies.Scan() {
			r.differ("the replies end: %v", replies.Err())
		}
		if replies.Text() == floodEnd {
			ends++
			d := g.Int64N(second)
			r.move(d, d, func() {})
		}
	}
	r.stats.tally[numCalls] += floodCalls * floodTimes
	if r.number%4 == 3 {
		r.floodCopies()
	}
}

func (r *run) floodCopies() {
	r.inStep()
	r.copies(r.dataset(r.master))
}

// appendCall appends a call as the server reads it.
func appendCall(b []byte, w words) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(w))
	for _, word := range w {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}
