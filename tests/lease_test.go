package tests

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLease_replies(t *testing.T) {
	s := startStill(t)
	for i, c := range []struct{ call, want string }{
		{"GO.LEASE k 2 3600 a", "[0 2 1 -1 3600 0]"},
		{"GO.LEASE k 2 7200 b", "[0 2 0 -1 7200 0]"},
		{"GO.LEASE k 2 60 c", "[1 2 0 3600 7200 0]"},
		{"GO.LEASE k 1 60 c", "[1 1 0 7200 7200 0]"}, // two leases must lapse first
		{"GO.LEASE k 1 60 a", "[0 1 0 -1 7200 1]"},   // a renewal is admitted at any limit
		{"GO.LEASE k 2 3600000 a MS", "[0 2 0 -1 N 1]"},
		{"GO.LEASE k 3 60 c", "[0 3 0 -1 7200 0]"},
		{"GO.RELEASE k x", "0"},
		{"GO.RELEASE k a x a b", "2"},
		{"GO.LEASE k 2 3600 MS", "[0 2 0 -1 3600 0]"}, // MS is the id here
		{"GO.RELEASE k MS c", "2"},
		{"EXISTS k", "0"},
		{"GO.RELEASE k a", "0"},
	} {
		got := s.ask(c.call)
		if strings.Contains(c.want, "N") { // a time in ms differs from run to run
			got = regexp.MustCompile(`\b7[12]\d{5}\b`).ReplaceAllString(got, "N")
		}
		assert.Equal(t, c.want, got, "step %d: %s", i, c.call)
	}
}

// A holder whose lease lapsed learns from its next renewal that it lost the slot in between.
func TestLease_renewedTellsALapse(t *testing.T) {
	s := start(t, options{})
	assert.Equal(t, "[0 1 0 -1 1 0]", s.must("GO.LEASE k 1 1 a MS"))
	eventually(t, "the lease of a has lapsed, and b holds the slot", func() bool {
		return ints(t, s.Do(ctx, fields("GO.LEASE k 1 3600 b")...))[0] == 0
	})
	assert.Equal(t, "[1 1 0 3600 3600 0]", s.must("GO.LEASE k 1 60 a"))
	assert.Equal(t, "1", s.must("GO.RELEASE k b"))
	assert.Equal(t, "[0 1 0 -1 60 0]", s.must("GO.LEASE k 1 60 a"), "b held the slot since a took it")
	assert.Equal(t, "[0 1 0 -1 60 1]", s.must("GO.LEASE_RO k 1 60 a"))
	assert.Equal(t, "[0 1 0 -1 60 1]", s.must("GO.LEASE k 1 60 a"))
	assert.Equal(t, "[1 1 0 60 60 0]", s.must("GO.LEASE_RO k 1 60 b"))
}

// There are never more holders than slots, and released slots are taken again.
func TestLease_manyClients(t *testing.T) {
	s := start(t, options{})
	const limit, clients, want = 5, 64, 60
	var holders, highest, taken atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			for taken.Load() < limit*want {
				id := fmt.Sprint("client ", client)
				reply, err := conn.Do(ctx, "GO.LEASE", "k", limit, 3600, id).Int64Slice()
				if !assert.NoError(t, err) {
					return
				}
				if reply[0] == 1 {
					continue
				}
				n := holders.Add(1)
				for h := highest.Load(); n > h && !highest.CompareAndSwap(h, n); h = highest.Load() {
				}
				taken.Add(1)
				if client%2 == 0 {
					conn.Do(ctx, "GO.LEASE", "k", limit, 3600, id) // renew the lease
				}
				holders.Add(-1)
				held, err := conn.Do(ctx, "GO.RELEASE", "k", id).Int64()
				assert.NoError(t, err)
				assert.EqualValues(t, 1, held)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, highest.Load(), int64(limit))
	assert.Greater(t, highest.Load(), int64(1), "the holders never overlapped, so the test proves nothing")
	assert.GreaterOrEqual(t, taken.Load(), int64(limit*want))
	assert.Zero(t, s.Exists(ctx, "k").Val())
}

// The slots of crashed holders become free one by one. The key goes away with the last
// lease.
func TestLease_crashedHolders(t *testing.T) {
	s := start(t, options{})
	for i := range 3 {
		s.must(fmt.Sprintf("GO.LEASE k 3 %d crashed%d MS", 50+50*i, i))
	}
	for i := range 3 {
		eventually(t, "a slot is free", func() bool {
			return ints(t, s.Do(ctx, "GO.LEASE", "k", 3, 3600, fmt.Sprint("next", i)))[0] == 0
		})
	}
	assert.EqualValues(t, 3, s.ZCard(ctx, "k").Val())
	assert.Equal(t, "0", s.must("GO.RELEASE k crashed0 crashed1 crashed2"), "the crashed holders hold nothing any more")
	assert.Equal(t, "[1 3 0 3600 3600 0]", s.must("GO.LEASE k 3 60 late"))
	s.must("GO.LEASE alone 1 1 a MS")
	eventually(t, "the key has expired", func() bool { return s.Exists(ctx, "alone").Val() == 0 })
}

// The key expires with the lease that ends last, also after that lease is renewed for a
// shorter time or released. PERSIST by hand stays in effect until the next admitted call.
func TestLease_expiry(t *testing.T) {
	s := start(t, options{})
	check := func(call string, seconds int64) {
		t.Helper()
		before := s.now() / 1_000_000
		s.must(call)
		at := s.expiry("k") - before
		assert.True(t, at >= seconds*1000-60_000 && at <= seconds*1000*5/4+1000+1, "%s: expires in %d ms, want %d s", call, at, seconds)
	}
	check("GO.LEASE k 9 1000 a", 1000)
	check("GO.LEASE k 9 100000 b", 100_000)
	check("GO.LEASE k 9 1000 c", 100_000)
	check("GO.LEASE k 9 2000 b", 2000)
	s.Persist(ctx, "k")
	s.must("GO.LEASE k 1 1000 d") // denied
	assert.EqualValues(t, -1, s.expiry("k"))
	check("GO.LEASE k 9 10000 d", 10_000)
	check("GO.RELEASE k d", 2000)
	s.Persist(ctx, "k")
	check("GO.RELEASE k b", 1000)
}
