package tests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listener hears the keyspace events of one server.
type listener struct {
	s   *server
	sub *redis.PubSub
}

func (s *server) listen() *listener {
	s.t.Helper()
	l := &listener{s, s.PSubscribe(ctx, "__keyspace@0__:*", "mark")}
	s.t.Cleanup(func() { l.sub.Close() })
	for range 2 {
		_, err := l.sub.Receive(ctx) // that it is subscribed
		require.NoError(s.t, err)
	}
	return l
}

// heard returns the events since it was last called, as "event key", without the
// server's own for a key that was not there.
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
			require.Fail(l.s.t, "no mark")
		}
	}
}

// The events that the effects would give if a client sent them, each once.
func TestEvents(t *testing.T) {
	s := start(t, options{args: []string{"--notify-keyspace-events", "KA"}})
	l := s.listen()
	for _, c := range []struct {
		call string
		want string // a comma between events
	}{
		{"GO.THROTTLE k 99 100 360000 0", ""},
		{"GO.THROTTLE k 99 100 360000 -1", ""},
		{"GO.THROTTLE k 99 100 360000 101", ""},
		{"GO.THROTTLE k 99 100 360000 1", "hset k,expire k"},
		{"GO.THROTTLE k 99 100 360000 1", "hset k"},
		{"GO.THROTTLE k 99 100 360000 0", ""},
		{"GO.THROTTLE k 99 100 360000 99", ""},
		{"GO.THROTTLE k x 100 360000 99", ""},
		{"GO.THROTTLE_RO k 99 100 360000 1", ""},
		{"GO.THROTTLE k 99 100 360000 -1", "hset k"},
		{"GO.THROTTLE k 99 100 360000 999 UPTO", "hset k,expire k"},
		{"GO.THROTTLE k 99 100 360000 999 UPTO", ""},
		{"GO.THROTTLE k 99 100 6000 1", "hset k,expire k"}, // denied, but it brings a new rate
		{"GO.THROTTLE k 99 100 6000 1", ""},
		{"GO.THROTTLE k 99 7 6000 -1", "hset k,expire k"},
		{"GO.THROTTLE k 99 1 6000 -1", "hset k,hdel k,expire k"},
		{"GO.THROTTLE k 99 1 6000 -100", "del k"},
		{"GO.THROTTLE k 99 1 6000 -100", ""},

		{"GO.WINDOW w 100 360000 0", ""},
		{"GO.WINDOW w 100 360000 -1", ""},
		{"GO.WINDOW w 100 360000 101", ""},
		{"GO.WINDOW w 100 360000 1", "zadd w,expire w"},
		{"GO.WINDOW w 100 360000 9 UPTO", "zadd w"},
		{"GO.WINDOW w 100 360000 99", ""},
		{"GO.WINDOW w 100 360000 1 x", ""},
		{"GO.WINDOW_RO w 100 360000 1", ""},
		{"GO.WINDOW w 100 360000 -1", "zadd w,zrem w"},
		{"GO.WINDOW w 100 360000 -100", "del w"},
		{"GO.WINDOW w 100 360000 -100", ""},
		{"GO.WINDOW w 1000 3153600000", "zadd w,expire w"},
		{"GO.WINDOW w 1000 3153600000", "zadd w,zrem w"}, // they share an entry
		{"GO.WINDOW w 1000 3153600000 1 EXACT", "zadd w"},
		{"PERSIST w", "persist w"},
		{"GO.WINDOW w 1000 3153600000 0", ""},
		{"GO.WINDOW w 1000 3153600000 1 EXACT", "zadd w,expire w"},

		{"GO.QUOTA q 10 360000 0", ""},
		{"GO.QUOTA q 10 360000 -1", ""},
		{"GO.QUOTA q 10 360000 11", ""},
		{"GO.QUOTA q 10 360000 8", "set q,expire q"},
		{"GO.QUOTA q 10 360000 1", "set q"},
		{"GO.QUOTA q 10 360000 2", ""},
		{"GO.QUOTA q 10 360000 2 UPTO", "set q"}, // a byte longer
		{"GO.QUOTA q 10 360000 2 UPTO", ""},
		{"GO.QUOTA q 10 360000 x", ""},
		{"GO.QUOTA_RO q 10 360000 1", ""},
		{"GO.QUOTA q 10 360000 -2", "set q"}, // a byte shorter
		{"PERSIST q", "persist q"},
		{"GO.QUOTA q 10 360000 1", "set q,expire q"},
		{"GO.QUOTA q 10 360000 -100", "del q"},
		{"GO.QUOTA q 10 360000 -100", ""},

		{"GO.MTHROTTLE 2 m n 1 1 3600 1 1 1 3600 0", "hset m,expire m"},
		{"GO.MTHROTTLE 2 m n 1 1 3600 1 1 1 3600 1", "hset m,expire m,hset n,expire n"},
		{"GO.MTHROTTLE 2 m n 1 1 3600 1 1 1 3600 1", ""},
		{"GO.MTHROTTLE 2 n m 1 1 3600 1 1 1 3600 1", ""},
		{"GO.MTHROTTLE 2 m n 1 1 3600 0 1 1 3600 0", ""},
		{"GO.MTHROTTLE 2 m n 1 1 3600 0 x 1 3600 0", ""},
		{"GO.MTHROTTLE 3 n n n 1 1 3600 1 0 1 3600 1 9 1 3600 1", "hset n,expire n"},
		{"GO.MTHROTTLE 2 m n 1 1 3600 -9 1 1 3600 -9", "del m,hset n,expire n"},
		{"GO.MTHROTTLE 3 n n n 1 1 3600 0 0 1 3600 -1 9 1 3600 -1", "del n"},

		{"GO.LEASE l 2 3600 a", "zadd l,expire l"},
		{"GO.LEASE l 2 3600 a", "zadd l"},
		{"GO.LEASE l 2 7200 b", "zadd l,expire l"},
		{"GO.LEASE l 2 3600 c", ""},
		{"GO.LEASE l 2 x c", ""},
		{"GO.RELEASE l c", ""},
		{"GO.RELEASE l b c", "zrem l,expire l"},
		{"GO.RELEASE l b", ""},
		{"GO.RELEASE l a", "zrem l,del l"},
		{"GO.RELEASE l a", ""},
	} {
		s.Do(ctx, fields(c.call)...)
		assert.Equal(t, c.want, strings.Join(l.heard(), ","), c.call)
	}
	// A string that becomes a hash was deleted first.
	s.cell("k", 10_000_000)
	l.heard()
	s.throttle("k", 99, 100, 360000)
	assert.Equal(t, []string{"del k", "hset k", "expire k"}, l.heard(), "adoption")
	// What has lapsed is removed by the next call that is admitted.
	for _, c := range []struct{ fill, lapsed, call string }{
		{"GO.WINDOW w2 5 3600 5", "GO.WINDOW_RO w2 5 1 0 MS", "GO.WINDOW w2 5 1 1 MS"},
		{"GO.LEASE l2 1 1 a MS", "GO.LEASE l2 1 3600 b", "GO.LEASE l2 2 3600 c"},
	} {
		s.must(c.fill)
		eventually(t, "it lapses", func() bool {
			reply := s.must(c.lapsed)
			return strings.HasPrefix(reply, "[0 5 5 ") || strings.HasPrefix(reply, "[0 1 ")
		})
		heard := l.heard()
		s.must(c.call)
		heard = append(heard, l.heard()...)
		assert.Equal(t, 1, count(heard, "zrem"), "%s: %v", c.call, heard)
	}
}

// count tells how many of all begin with a word.
func count(all []string, word string) (n int) {
	for _, e := range all {
		if strings.HasPrefix(e, word+" ") {
			n++
		}
	}
	return n
}
