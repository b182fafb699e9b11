package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// ledger makes calls and remembers what the keys held after the last one that was acknowledged.
type ledger struct {
	t     *testing.T
	r     *rand.Rand
	keys  []string
	holds map[string]*memory.Value
	loose []string // the words of a call whose reply is lost: nothing is known of its keys
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{t: t, r: rand.New(rand.NewPCG(1, 11))}
	for i := range 5 {
		for _, kind := range []string{"t", "w", "q", "l"} {
			l.keys = append(l.keys, fmt.Sprint(kind, i))
		}
	}
	return l
}

// words draws a call. No key expires while the test runs.
func (l *ledger) words() []string {
	n, i, j := func(most int) int { return l.r.IntN(most) }, l.r.IntN(5), l.r.IntN(5)
	return strings.Fields([]string{
		fmt.Sprintf("GO.THROTTLE t%d 99 %d 7h %d", i, 1+n(9), n(5)-1),
		fmt.Sprintf("GO.THROTTLE t%d 1 1 2h 2 LOCKOUT 3h", i),
		fmt.Sprintf("GO.WINDOW w%d %d 5h %d", i, 20+n(200), n(9)-3),
		fmt.Sprintf("GO.QUOTA q%d 1000 8h %d", i, n(7)-3),
		fmt.Sprintf("GO.LEASE l%d 9 2h id%d", i, n(20)),
		fmt.Sprintf("GO.RELEASE l%d id%d id%d", i, n(20), n(20)),
		fmt.Sprintf("GO.ALL t%d THROTTLE 99 1 1h THROTTLE 99 3 2h %d KEY w%d WINDOW 300 5h KEY q%d QUOTA 1000 8h", i, n(3), j, i),
		fmt.Sprintf("GO.ALL l%d LEASE 9 2h id%d KEY t%d THROTTLE 99 2 7h", i, n(20), j),
	}[n(8)])
}

// call makes a call. Its error is the server's, or that of the connection.
func (l *ledger) call(c *redis.Client) error {
	words := l.words()
	p := c.Pipeline()
	call, read := p.Do(context.Background(), corpus.Args(words)...), l.read(p)
	_, _ = p.Exec(context.Background())
	var refused redis.Error
	switch err := call.Err(); {
	case errors.As(err, &refused):
		return err
	case err != nil || read.Err() != nil:
		l.loose = words
		return errors.Join(err, read.Err())
	}
	l.holds = corpus.Values(l.keys, read.Val().([]any))
	return nil
}

func (l *ledger) read(c redis.Cmdable) *redis.Cmd {
	return c.EvalRO(context.Background(), corpus.ReadKeys, l.keys)
}

// must makes calls that the server must make.
func (l *ledger) must(s *servers.Server, calls int) {
	l.t.Helper()
	c := client(s)
	defer c.Close()
	for range calls {
		if err := l.call(c); err != nil {
			l.t.Fatal(err)
		}
	}
}

// until makes calls until the server refuses one or ends.
func (l *ledger) until(s *servers.Server) error {
	c := client(s)
	defer c.Close()
	for range 200_000 {
		if err := l.call(c); err != nil {
			return err
		}
	}
	l.t.Fatal("the server neither refuses a call nor ends")
	return nil
}

// check makes sure that a server holds what was acknowledged.
func (l *ledger) check(s *servers.Server) {
	l.t.Helper()
	got, err := l.heldBy(s)
	if err != nil {
		l.t.Fatal(err)
	}
	l.compare(l.holds, got)
}

func (l *ledger) heldBy(s *servers.Server) (map[string]*memory.Value, error) {
	c := client(s)
	defer c.Close()
	found, err := l.read(c).Slice()
	return corpus.Values(l.keys, found), err
}

func (l *ledger) compare(want, got map[string]*memory.Value) {
	l.t.Helper()
	for _, key := range l.keys {
		if !slices.Contains(l.loose, key) && !reflect.DeepEqual(want[key], got[key]) {
			l.t.Errorf("%s: %+v, want %+v", key, got[key], want[key])
		}
	}
}

// client returns a client of one connection with RESP2, as corpus.Values wants it.
func client(s *servers.Server) *redis.Client {
	return s.Client(func(o *redis.Options) { o.Protocol, o.PoolSize = 2, 1 })
}
