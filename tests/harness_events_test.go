package tests

import (
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// listener receives the keyspace events of one server.
type listener struct {
	s   *server
	sub *redis.PubSub
}

func (s *server) listen() *listener {
	s.t.Helper()
	l := &listener{s, s.PSubscribe(ctx, "__keyspace@0__:*", "mark")}
	s.t.Cleanup(func() { l.sub.Close() })
	for range 2 {
		_, err := l.sub.Receive(ctx) // the confirmation of the subscription
		require.NoError(s.t, err)
	}
	return l
}

// heard returns the events since the last call of heard, each as "event key". It leaves out
// "new", an event of the server for each new key.
func (l *listener) heard() (all []string) {
	l.s.t.Helper()
	require.NoError(l.s.t, l.s.Publish(ctx, "mark", "").Err())
	for {
		select {
		case m := <-l.sub.Channel():
			if m.Channel == "mark" {
				return slices.DeleteFunc(all, func(e string) bool { return strings.HasPrefix(e, "new ") })
			}
			_, key, _ := strings.Cut(m.Channel, ":")
			all = append(all, m.Payload+" "+key)
		case <-time.After(patience):
			require.Fail(l.s.t, "the mark did not arrive")
		}
	}
}

// count returns how many events begin with a word.
func count(all []string, word string) (n int) {
	for _, e := range all {
		if strings.HasPrefix(e, word+" ") {
			n++
		}
	}
	return n
}
