package main

import (
	"bufio"
	"fmt"
	"net"

	"gothrottle/tests/world"
)

const (
	floodCalls = 2000 // drawn by a flood
	floodTimes = 25   // how often it makes them
	floodEnd   = "end-of-the-calls"
)

// flood makes calls at once, far more than a model could follow, and waits for the replies. Nobody looks at them. The servers
// must live, and a master and its replicas must hold the same.
func (r *run) flood(st *step) {
	g := world.NewGenerator(uint64(st.N), 2)
	var calls []byte
	for range floodCalls {
		calls = appendCall(calls, g.Call())
	}
	calls = appendCall(calls, words{"ECHO", floodEnd})
	for _, s := range []*server{r.master, r.twin} { // most of the time would go to the disk
		s.ask("CONFIG", "SET", "appendfsync", "no")
		defer s.ask("CONFIG", "SET", "appendfsync", "always")
	}
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
	r.tick()
	r.inStep()
	r.copies(r.dataset(r.master))
	r.emptied()
}

// appendCall appends a call as the server reads it.
func appendCall(b []byte, w words) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(w))
	for _, word := range w {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}
