package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// caller is a client that keeps calling CL.THROTTLE on the node that is master. It counts the
// units that it got and the errors.
type caller struct {
	s      *machine
	nodes  []*redis.Client
	master *redis.Client
	stop   chan struct{}
	done   sync.WaitGroup
	calls  atomic.Int64
	got    map[string]int64 // admitted units by key
	errors map[string]int   // errors by their first word
}

// The limits of the caller. A long limit drains one unit in 1000 seconds, so nothing of it drains
// while a test runs.
const (
	longLimit  = 1_000_000
	long       = "999999 1 1000"
	exhausted  = "2 1 360000"
	shortLived = "9 100 1"
)

// startCaller creates limiters of all kinds and then goes on calling until the test ends or calls end.
func (s *machine) startCaller() *caller {
	s.t.Helper()
	c := &caller{s: s, stop: make(chan struct{}), got: map[string]int64{}, errors: map[string]int{}}
	for _, n := range s.nodes {
		c.nodes = append(c.nodes, n.client(options3))
	}
	require.True(s.t, c.findMaster())
	c.call("user:42", long, 1)
	c.call("full", exhausted, 3)
	for i := range 50 {
		c.call(fmt.Sprint("early:", i), long, 7)
	}
	c.done.Go(func() {
		for c.running() {
			c.next(c.calls.Add(1))
		}
	})
	s.t.Cleanup(c.end)
	c.proceed()
	return c
}

func (c *caller) running() bool {
	select {
	case <-c.stop:
		return false
	default:
		return true
	}
}

// next makes call number n. Half of the keys early:N are never called again.
func (c *caller) next(n int64) {
	switch {
	case n%50 == 0:
		c.call(fmt.Sprint("new:", n), long, 3)
	case n%11 == 0:
		c.call("full", exhausted, 1)
	case n%7 == 0:
		c.call(fmt.Sprint("short:", rand.IntN(20)), shortLived, 1)
	case n%5 == 0:
		c.call(fmt.Sprint("early:", rand.IntN(25)), long, 2)
	default:
		c.call("user:42", long, 1)
	}
}

func (c *caller) call(key, limit string, quantity int64) {
	reply, err := c.master.Do(ctx, fields(fmt.Sprint("CL.THROTTLE ", key, " ", limit, " ", quantity))...).Int64Slice()
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), " ")
		c.errors[first]++
		c.findMaster()
	} else if reply[0] == 0 {
		c.got[key] += quantity
	}
}

// findMaster turns to the node that says that it is master.
func (c *caller) findMaster() bool {
	for end := time.Now().Add(patience); time.Now().Before(end) && c.running(); time.Sleep(time.Millisecond) {
		for _, n := range c.nodes {
			if role, err := n.Do(ctx, "ROLE").Slice(); err == nil && role[0] == "master" {
				c.master = n
				return true
			}
		}
	}
	return false
}

// proceed waits until the caller has made some hundred calls more.
func (c *caller) proceed() {
	c.s.t.Helper()
	was := c.calls.Load()
	eventually(c.s.t, "the caller makes calls", func() bool { return c.calls.Load() > was+300 })
}

// end stops the caller. After that its counts can be read.
func (c *caller) end() {
	if c.running() {
		close(c.stop)
	}
	c.done.Wait()
}

// account ends the caller and checks that a node knows each unit that the caller got, and that
// the caller saw no other errors than the named ones.
func (c *caller) account(n *server, errors ...string) {
	t := c.s.t
	t.Helper()
	c.end()
	t.Logf("%d calls, errors %v, user:42 got %d", c.calls.Load(), c.errors, c.got["user:42"])
	for code := range c.errors {
		assert.Contains(t, errors, code)
	}
	assert.EqualValues(t, 3, c.got["full"], "an exhausted limiter stayed exhausted")
	wrong := 0
	for key, got := range c.got {
		if key != "full" && !strings.HasPrefix(key, "short:") {
			reply := ints(t, n.Do(ctx, fields("CL.THROTTLE "+key+" "+long+" 0")...))
			if used := longLimit - reply[2]; used != got && wrong < 5 {
				wrong++
				t.Errorf("%s: the caller got %d units, the server knows %d", key, got, used)
			}
		}
	}
	assert.Greater(t, len(c.got), 80)
}
