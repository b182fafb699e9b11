package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// A conn is one client connection.
type conn struct {
	net.Conn
	r      *bufio.Reader
	out    []byte
	random *rand.Rand
	number int64 // no other conn of this run has it
	ops    int64 // sent so far
	batch  int64 // batches sent so far, of paced traffic
}

var connsMade int64

// dial opens n connections. Their random numbers are the same at each dial, so that all
// contenders see the same keys.
func dial(addr string, n int) ([]*conn, error) {
	var conns []*conn
	for i := range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			hangUp(conns)
			return nil, err
		}
		connsMade++
		conns = append(conns, &conn{Conn: c, r: bufio.NewReaderSize(c, 1<<16),
			random: rand.New(rand.NewPCG(1, uint64(i))), number: connsMade})
	}
	return conns, nil
}

func hangUp(conns []*conn) {
	for _, c := range conns {
		c.Close()
	}
}

// Traffic is ops sent in batches of depth by each connection, which waits for the
// replies before it sends the next batch.
type traffic struct {
	op     *op
	keys   int64 // random, or round robin if paced
	depth  int
	rate   float64       // ops per second of all connections; 0: as fast as they can
	period time.Duration // of the windows
	judge  func(ints []int64) sample
}

// A sample is what a reply said.
type sample struct {
	limited bool
	used    float64 // share of the limit that is in use
}

// A tally is what came of some traffic.
type tally struct {
	ops     int64
	took    time.Duration
	waits   []time.Duration // from sending to the reply, one per op; only if depth is 1
	samples int             // the last reply of each batch
	limited int
	used    float64 // sum over the samples
}

func (t *tally) add(u tally) {
	t.ops += u.ops
	t.waits = append(t.waits, u.waits...)
	t.samples += u.samples
	t.limited += u.limited
	t.used += u.used
}

// maxLag is the part of the period by which paced traffic may be late and still catch up.
// Beyond that the schedule moves, since a burst would be denied.
const maxLag = 25

// run sends traffic for a time.
func (t *traffic) run(conns []*conn, d time.Duration) (tally, error) {
	return together(conns, func(i int, c *conn, start time.Time) (tally, error) {
		var sum tally
		next := start
		for interval := time.Duration(0); ; next = next.Add(interval) {
			if t.rate > 0 {
				batchTime := time.Duration(float64(t.depth) / t.rate * 1e9)
				if interval == 0 {
					next = start.Add(batchTime * time.Duration(i))
				}
				interval = batchTime * time.Duration(len(conns))
				time.Sleep(time.Until(next))
				next = later(next, time.Now().Add(-t.period/maxLag))
			}
			if time.Since(start) >= d {
				return sum, nil
			}
			c.out = c.out[:0]
			first := (c.batch*int64(len(conns)) + int64(i)) * int64(t.depth)
			for j := range int64(t.depth) {
				key := (first + j) % t.keys
				if t.rate == 0 {
					key = c.random.Int64N(t.keys)
				}
				c.append(t, key, c.random.Int64N(100))
			}
			c.batch++
			if err := c.exchange(t, t.depth, &sum); err != nil {
				return sum, err
			}
		}
	})
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// fill sends n ops, as fast as it can, that visit the keys one after the other.
func (t *traffic) fill(conns []*conn, n int64) (tally, error) {
	const depth = 128
	return together(conns, func(i int, c *conn, _ time.Time) (tally, error) {
		var sum tally
		at, end := n*int64(i)/int64(len(conns)), n*int64(i+1)/int64(len(conns))
		for at < end {
			batch := min(depth, end-at)
			c.out = c.out[:0]
			for range batch {
				c.append(t, at%t.keys, at/t.keys)
				at++
			}
			if err := c.exchange(t, int(batch), &sum); err != nil {
				return sum, err
			}
		}
		return sum, nil
	})
}

// together runs work for all connections at once and adds up what it returns.
func together(conns []*conn, work func(i int, c *conn, start time.Time) (tally, error)) (tally, error) {
	type done struct {
		tally
		err error
	}
	results := make(chan done)
	start := time.Now()
	for i, c := range conns {
		go func() {
			sum, err := work(i, c, start)
			results <- done{sum, err}
		}()
	}
	var sum tally
	var err error
	for range conns {
		d := <-results
		sum.add(d.tally)
		if d.err != nil && err == nil {
			err = d.err
			hangUp(conns) // the others end too
		}
	}
	sum.took = time.Since(start)
	return sum, err
}

func (c *conn) append(t *traffic, key, slot int64) {
	c.out = t.op.append(c.out, blanksOf{key: key, keys: t.keys, slot: slot,
		id: c.number*1e10 + c.ops, period: t.period}, c.random)
	c.ops++
}

// exchange sends the batch in c.out and reads the replies.
func (c *conn) exchange(t *traffic, depth int, sum *tally) error {
	sent := time.Now()
	if _, err := c.Write(c.out); err != nil {
		return err
	}
	var room [8]int64
	ints := room[:0:0]
	for i := range depth * t.op.replies {
		if i == (depth-1)*t.op.replies {
			ints = room[:0]
		}
		var err error
		if ints, err = skipReply(c.r, ints); err != nil {
			return err
		}
	}
	sum.ops += int64(depth)
	if depth == 1 {
		sum.waits = append(sum.waits, time.Since(sent))
	}
	if t.judge != nil {
		s := t.judge(ints)
		sum.samples++
		sum.used += s.used
		if s.limited {
			sum.limited++
		}
	}
	return nil
}

// ask sends one command and returns the text of its reply, a string or a number.
func (c *conn) ask(words ...string) (string, error) {
	request := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := c.Write(request); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 {
		return "", errProtocol
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+', ':':
		return text, nil
	case '-':
		return "", errReply(text)
	case '$':
		n, ok := parseInt([]byte(text))
		if !ok || n < 0 {
			return "", errProtocol
		}
		body := make([]byte, n+2)
		for at := 0; at < len(body); {
			k, err := c.r.Read(body[at:])
			if err != nil {
				return "", err
			}
			at += k
		}
		return string(body[:n]), nil
	}
	return "", errProtocol
}
