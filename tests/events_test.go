package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each effect gives the event that the same command of a client would give, once.
func TestEvents(t *testing.T) {
	s := start(t, options{args: []string{"--notify-keyspace-events", "KA"}})
	l := s.listen()
	for _, c := range []struct {
		call string
		want string // events, separated by commas
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
		{"GO.THROTTLE k 99 100 6000 1", "hset k,expire k"}, // denied, but the rate is new
		{"GO.THROTTLE k 99 100 6000 1", ""},
		{"GO.THROTTLE k 99 7 6000 -1", "hset k,expire k"},
		{"GO.THROTTLE k 99 1 6000 -1", "hset k,hdel k,expire k"},
		{"GO.THROTTLE k 99 1 6000 -100", "del k"},
		{"GO.THROTTLE k 99 1 6000 -100", ""},

		{"GO.THROTTLE k 0 1 36000 9 FORCE", "hset k,expire k"},
		{"GO.THROTTLE k 0 1 36000 0 FORCE", ""},
		{"GO.THROTTLE k 0 1 36000 1 RESERVE 9", ""},
		{"GO.THROTTLE k 0 1 36000 1 RESERVE 999999", "hset k,expire k"},
		{"GO.THROTTLE_RO k 0 1 36000 1 LOCKOUT 999999", ""},
		{"GO.THROTTLE k 0 1 36000 0 LOCKOUT 999999", ""},
		{"GO.THROTTLE k 0 1 36000 1 LOCKOUT 999999", "hset k,expire k"},
		{"GO.THROTTLE k 0 1 36000 1 LOCKOUT 999999", ""},
		{"GO.THROTTLE k 0 1 36000 1 FORCE", "hset k"},
		{"GO.THROTTLE k 0 1 36000 -99", "hset k"}, // the lockout keeps the key
		{"DEL k", "del k"},
		{"GO.WINDOW v 1 360000 9 FORCE", "zadd v,expire v"},
		{"GO.WINDOW v 1 360000 9 EXACT FORCE", "zadd v"},
		{"GO.WINDOW v 1 360000 0 FORCE", ""},
		{"GO.WINDOW v 1 360000 -18 FORCE", "del v"},
		{"GO.QUOTA v 1 360000 9 FORCE", "set v,expire v"},
		{"GO.QUOTA v 1 360000 9 FORCE", "set v"},
		{"GO.ALL k THROTTLE 0 1 36000 9 KEY v QUOTA 1 360000 -18 FORCE", "del v,hset k,expire k"},
		{"GO.ALL k THROTTLE 0 1 36000 -9 KEY v QUOTA 1 360000 0 FORCE", "del k"},

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
		{"GO.WINDOW w 1000 3153600000", "zadd w,zrem w"}, // the calls share an entry
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
		{"GO.QUOTA q 10 360000 2 UPTO", "set q"}, // the value gets a byte longer
		{"GO.QUOTA q 10 360000 2 UPTO", ""},
		{"GO.QUOTA q 10 360000 x", ""},
		{"GO.QUOTA_RO q 10 360000 1", ""},
		{"GO.QUOTA q 10 360000 -2", "set q"}, // the value gets a byte shorter
		{"PERSIST q", "persist q"},
		{"GO.QUOTA q 10 360000 1", "set q,expire q"},
		{"GO.QUOTA q 10 360000 -100", "del q"},
		{"GO.QUOTA q 10 360000 -100", ""},

		{"GO.ALL m THROTTLE 1 1 3600 1 KEY n THROTTLE 1 1 3600 0", "hset m,expire m"},
		{"GO.ALL m THROTTLE 1 1 3600 1 KEY n THROTTLE 1 1 3600 1", "hset m,expire m,hset n,expire n"},
		{"GO.ALL m THROTTLE 1 1 3600 1 KEY n THROTTLE 1 1 3600 1", ""},
		{"GO.ALL n THROTTLE 1 1 3600 1 KEY m THROTTLE 1 1 3600 1", ""},
		{"GO.ALL m THROTTLE 1 1 3600 0 KEY n THROTTLE 1 1 3600 0", ""},
		{"GO.ALL m THROTTLE 1 1 3600 0 KEY n THROTTLE x 1 3600 0", ""},
		{"GO.ALL n THROTTLE 1 1 3600 1 THROTTLE 0 1 3600 1 THROTTLE 9 1 3600 1", "hset n,expire n"},
		{"GO.ALL m THROTTLE 1 1 3600 -9 KEY n THROTTLE 1 1 3600 -9", "del m,hset n,expire n"},
		{"GO.ALL n THROTTLE 1 1 3600 0 THROTTLE 0 1 3600 -1 THROTTLE 9 1 3600 -1", "del n"},

		{"GO.ALL t THROTTLE 9 1 3600 KEY w WINDOW 9 3600 2 KEY q QUOTA 9 3600 3 KEY l LEASE 2 3600 a",
			"zadd w,expire w,hset t,expire t,set q,expire q,zadd l,expire l"},
		{"GO.ALL t THROTTLE 9 1 3600 KEY w WINDOW 9 3600 2 KEY q QUOTA 9 3600 7 KEY l LEASE 2 3600 b", ""},
		{"GO.ALL_RO t THROTTLE 9 1 3600 KEY w WINDOW 9 3600 2 KEY q QUOTA 9 3600 3 KEY l LEASE 2 3600 b", ""},
		{"GO.ALL t THROTTLE 9 1 3600 -9 KEY w WINDOW 9 3600 -9 KEY q QUOTA 9 3600 -9", "del t,del w,del q"},
		{"GO.RELEASE l a", "zrem l,del l"},

		{"GO.LEASE l 2 3600 a", "zadd l,expire l"},
		{"GO.LEASE_RO l 2 3600 b", ""},
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
	// Adoption deletes the string before it writes the hash.
	s.cell("k", 10_000_000)
	l.heard()
	s.throttle("k", 99, 100, 360000)
	assert.Equal(t, []string{"del k", "hset k", "expire k"}, l.heard(), "adoption")
	// The next admitted call removes entries that have lapsed.
	for _, c := range []struct{ fill, lapsed, call string }{
		{"GO.WINDOW w2 5 3600 5", "GO.WINDOW_RO w2 5 1 0 MS", "GO.WINDOW w2 5 1 1 MS"},
		{"GO.LEASE l2 1 1 a MS", "GO.LEASE_RO l2 1 3600 b", "GO.LEASE l2 2 3600 c"},
		{"GO.LEASE l3 1 1 a MS", "GO.LEASE_RO l3 1 3600 b", "GO.ALL l3 LEASE 2 3600 c KEY q3 QUOTA 1 60"},
	} {
		s.must(c.fill)
		s.Persist(ctx, strings.Fields(c.fill)[1]) // otherwise the key expires about a second after its entry
		eventually(t, "the entry has lapsed", func() bool {
			reply := s.must(c.lapsed)
			return strings.HasPrefix(reply, "[0 5 5 ") || strings.HasPrefix(reply, "[0 1 ")
		})
		heard := l.heard()
		s.must(c.call)
		heard = append(heard, l.heard()...)
		assert.Equal(t, 1, count(heard, "zrem"), "%s: %v", c.call, heard)
	}
}
