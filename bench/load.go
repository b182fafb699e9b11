package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// A conn is a client connection.
type conn struct {
	net.Conn
	r      *bufio.Reader
	out    []byte
	random *rand.Rand
	number int64 // unique in the run
	ops    int64 // ops sent so far
	batch  int64 // batches sent so far; paced traffic only
}

var connsMade int64

// dial opens n connections. The seeds of their random numbers are the same at each dial, so
// all contenders visit the same keys.
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

// Traffic is a stream of ops. Each connection sends a batch of depth ops and waits for all
// replies before it sends the next batch.
type traffic struct {
	op     *op
	keys   int64 // number of keys: visited at random, or in turn if paced
	depth  int
	rate   float64       // ops per second of all connections together; 0 is no limit
	period time.Duration // the period of the windows
	judge  func(ints []int64) sample
}

// A sample is what one reply says.
type sample struct {
	limited bool
	used    float64 // share of the limit in use, 0 to 1
}

// A tally sums up some traffic.
type tally struct {
	ops     int64
	took    time.Duration
	waits   []time.Duration // from sending to the reply, one per op; empty unless depth is 1
	samples int             // replies judged: the last one of each batch
	limited int             // samples that say limited
	used    float64         // sum over the samples
}

func (t *tally) add(u tally) {
	t.ops += u.ops
	t.waits = append(t.waits, u.waits...)
	t.samples += u.samples
	t.limited += u.limited
	t.used += u.used
}

// Paced traffic that is late by up to 1/maxLag of the period catches up. If it is later, the
// schedule moves, because the server would deny the burst.
const maxLag = 25

// run sends traffic for a time d.
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

// fill sends n ops as fast as it can. The ops visit the keys in turn.
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

// together runs work for all connections at once and adds up the tallies.
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
			hangUp(conns) // this ends the work of the other connections
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

// exchange sends the batch in c.out, reads the replies and adds them to sum.
func (c *conn) exchange(t *traffic, depth int, sum *tally) error {
	sent := time.Now()
	if _, err := c.Write(c.out); err != nil {
		return err
	}
	if err := c.receive(t, depth, sum); err != nil {
		return err
	}
	if depth == 1 {
		sum.waits = append(sum.waits, time.Since(sent))
	}
	return nil
}

// receive reads the replies of a batch and adds them to sum.
func (c *conn) receive(t *traffic, depth int, sum *tally) error {
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

// request returns the wire form of a command.
func request(words ...string) []byte {
	wire := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		wire = fmt.Appendf(wire, "$%d\r\n%s\r\n", len(word), word)
	}
	return wire
}

// call sends a request and returns the integers of its reply, the first eight if there are
// more.
func (c *conn) call(request []byte) ([]int64, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	return skipReply(c.r, make([]int64, 0, 8))
}

// ask sends one command and returns the text of its reply, which is a string or a number.
func (c *conn) ask(words ...string) (string, error) {
	if _, err := c.Write(request(words...)); err != nil {
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
