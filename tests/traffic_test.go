package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// traffic sends random calls of every command and what users do beside them. Its
// long-lived keys outlive the test; the short-lived ones are gone soon after it.
type traffic struct {
	s      *server
	r      *rand.Rand
	dbs    []*redis.Client
	limits map[string][3]int64 // what a key was last called with
}

// How many long-lived keys there are of each kind; a tenth as many short-lived ones.
var longKeys = map[string]int{"hash": 1500, "log": 300, "quota": 300, "lease": 150}

func newTraffic(s *server, seed uint64) *traffic {
	tr := &traffic{s: s, r: rand.New(rand.NewPCG(seed, 0)), limits: map[string][3]int64{}}
	for _, db := range []int{0, 3} {
		c := s.client(options3)
		options := *c.Options()
		options.DB = db
		c = redis.NewClient(&options)
		s.t.Cleanup(func() { c.Close() })
		tr.dbs = append(tr.dbs, c)
	}
	return tr
}

func (tr *traffic) pick(of ...int64) int64 { return of[tr.r.IntN(len(of))] }

// oneIn is true once in n times.
func (tr *traffic) oneIn(n int) bool { return tr.r.IntN(n) == 0 }

// key returns one of the keys of a kind, and whether it is a long-lived one.
func (tr *traffic) key(kind string) (key string, long bool) {
	if tr.oneIn(10) {
		return fmt.Sprintf("short:%s:%d", kind, tr.r.IntN(longKeys[kind]/10)), false
	}
	return fmt.Sprintf("long:%s:%d", kind, tr.r.IntN(longKeys[kind])), true
}

// period returns a period in ms: of months for a long-lived key, else of a few ms.
func (tr *traffic) period(long bool) int64 {
	if long {
		return 1000 * (10_000_000 + tr.r.Int64N(10_000_000))
	}
	return 1 + tr.r.Int64N(20)
}

// params returns the limits of a call: mostly those that its key had before.
func (tr *traffic) params(key string, fresh func() [3]int64) [3]int64 {
	old, ok := tr.limits[key]
	if !ok || tr.oneIn(12) {
		old = fresh()
		tr.limits[key] = old
	}
	return old
}

// rate returns max_burst, count and a period in ms.
func (tr *traffic) rate(key string, long bool) [3]int64 {
	rate := tr.params(key, func() [3]int64 {
		burst := tr.pick(0, 1, 4, 15, 99, 999)
		if !long {
			burst = min(burst, 9)
		}
		count, period := tr.pick(1, 2, 3, 7, 10, 64, 997, 1_000_003), tr.period(long)
		if count == 1_000_003 && long {
			period *= 150 // a unit lasts long, whatever the count
		}
		return [3]int64{burst, count, period}
	})
	if long {
		rate[0] += tr.pick(0, 0, 0, 1, 40) // a neighbour with another burst
	}
	return rate
}

func (tr *traffic) quantity() int64 {
	switch tr.r.IntN(20) {
	case 0:
		return 0
	case 1, 2:
		return -1 - tr.r.Int64N(30)
	case 3:
		return -1_000_000
	case 4:
		return 5000 // more than most limits
	case 5, 6, 7:
		return 1 + tr.r.Int64N(40)
	}
	return 1
}

// inUnits appends a period in ms and a quantity, in words that mean the same.
func (tr *traffic) inUnits(words []any, period int64, options ...string) []any {
	if period%1000 == 0 && !tr.oneIn(6) {
		words = append(words, period/1000)
	} else {
		words = append(words, period)
		options = append(options, "ms")
	}
	if !tr.oneIn(6) {
		words = append(words, tr.quantity())
	}
	for _, option := range options {
		if option != "" {
			words = append(words, fields(option)...)
		}
	}
	return words
}

// sometimes returns an option now and then.
func (tr *traffic) sometimes(option string) string {
	if tr.oneIn(5) {
		return option
	}
	return ""
}

// call returns the words of one call.
func (tr *traffic) call() []any {
	switch n := tr.r.IntN(20); {
	case n < 8:
		key, long := tr.key("hash")
		rate := tr.rate(key, long)
		if rate[2]%1000 == 0 && tr.oneIn(6) {
			return []any{"CL.THROTTLE", key, rate[0], rate[1], rate[2] / 1000, tr.quantity()}
		}
		return tr.inUnits([]any{"GO.THROTTLE", key, rate[0], rate[1]}, rate[2], tr.sometimes("UPTO"))
	case n < 12:
		key, long := tr.key("log")
		p := tr.params(key, func() [3]int64 {
			return [3]int64{tr.pick(1, 5, 100, 120, 121, 1000, 1_000_000), tr.period(long)}
		})
		if tr.oneIn(20) {
			p[1] = tr.period(false) // for this call alone: it clears away what is older
		}
		return tr.inUnits([]any{"GO.WINDOW", key, p[0]}, p[1], tr.sometimes("UPTO"), tr.sometimes("EXACT"))
	case n < 15:
		key, long := tr.key("quota")
		p := tr.params(key, func() [3]int64 {
			return [3]int64{tr.pick(1, 5, 100, 100_000), tr.period(long)}
		})
		return tr.inUnits([]any{"GO.QUOTA", key, p[0]}, p[1], tr.sometimes("UPTO"),
			tr.sometimes(fmt.Sprint("ALIGN ", tr.r.IntN(100)-50)))
	case n < 17:
		return tr.several()
	case n == 17:
		key, _ := tr.key("lease")
		words := []any{"GO.RELEASE", key}
		for range 1 + tr.r.IntN(4) {
			words = append(words, tr.id())
		}
		return words
	}
	key, long := tr.key("lease")
	return []any{"GO.LEASE", key, tr.pick(1, 3, 10, 10), tr.period(long && !tr.oneIn(5)), tr.id(), "MS"}
}

func (tr *traffic) id() string { return fmt.Sprintf("\x00id\xff%d", tr.r.IntN(15)) }

// several returns a call with several limits.
func (tr *traffic) several() []any {
	n := 1 + tr.r.IntN(4)
	keys, limits := []any{"GO.MTHROTTLE", n}, []any{}
	times := map[string]int{}
	for i := range n {
		key, _ := tr.key("hash")
		if i > 0 && tr.oneIn(2) {
			key = keys[2].(string) // a further cell
		}
		keys = append(keys, key)
		rate := tr.rate(fmt.Sprint(key, times[key]), strings.HasPrefix(key, "long"))
		times[key]++
		limits = append(limits, rate[0], rate[1], rate[2], tr.quantity())
	}
	return append(append(keys, limits...), "MS")
}

// byHand returns what a user does beside the calls, nil for nothing.
func (tr *traffic) byHand() []any {
	kinds := []string{"hash", "hash", "hash", "log", "quota", "lease"}
	kind := kinds[tr.r.IntN(len(kinds))]
	other := func() string { return fmt.Sprintf("long:%s:%d", kind, tr.r.IntN(longKeys[kind])) }
	key := other()
	switch tr.r.IntN(400) {
	case 0, 1, 2:
		return []any{"DEL", key}
	case 3, 4, 5:
		return []any{"PERSIST", key}
	case 6, 7, 8:
		return []any{"EXPIRE", key, 100_000 + tr.r.IntN(100_000_000)}
	case 9, 10:
		if kind != "hash" {
			return nil
		}
		delete(tr.limits, key)
		tat := time.Now().Add(time.Duration(1_000_000+tr.r.IntN(20_000_000)) * time.Second)
		return []any{"SET", key, tat.UnixNano(), "PXAT", tat.UnixMilli() + 1e9} // as redis-cell leaves it
	case 11:
		if tr.r.IntN(4) > 0 {
			return nil
		}
		switch kind { // an error from now on, until it is deleted
		case "hash":
			return []any{"HSET", key, "name", "Ann"}
		case "quota":
			return []any{"SET", key, "text", "KEEPTTL"}
		}
		return []any{"ZADD", key, tr.pick(0, 1, 4e15, math.MaxInt64), "Ann"}
	case 12: // a state at the far ends of what is one
		count := tr.pick(2, 7, 1_000_000_000_000)
		return []any{"HSET", key, "0", tr.pick(math.MaxInt64, math.MaxInt64-1, 9_000_000_000_000_000_000),
			"1", tr.pick(1, 3_153_600_000_000_000_000), "2", tr.pick(0, 1, count-1), "3", count}
	case 13, 14:
		return []any{"GO.THROTTLE", key, "x", 1, 1}
	case 15, 16:
		return []any{"RENAME", key, other()}
	case 17:
		return []any{"COPY", key, other(), "REPLACE"}
	case 18: // of another kind, mostly
		return []any{"GO.WINDOW", key, 10, 10_000_000}
	case 19:
		return []any{"GO.LEASE", key, 10, 10_000_000, "a"}
	case 20:
		return []any{"GO.QUOTA_RO", key, 10, 10_000_000}
	}
	return nil
}

// run sends n calls, in batches that are pipelines, transactions and scripts.
func (tr *traffic) run(n int) {
	tr.s.t.Helper()
	for sent := 0; sent < n; {
		db := tr.dbs[tr.r.IntN(100)/95]
		p := db.Pipeline()
		if tr.oneIn(4) {
			p = db.TxPipeline()
		}
		for range 1 + tr.r.IntN(500) {
			if words := tr.byHand(); words != nil {
				p.Do(ctx, words...)
			}
			words := tr.call()
			if sent++; tr.oneIn(20) {
				p.Eval(ctx, "return redis.call(unpack(ARGV))", nil, words...)
				continue
			}
			p.Do(ctx, words...)
		}
		cmds, _ := p.Exec(ctx)
		for _, cmd := range cmds {
			// Errors are part of it, but a connection must not break.
			if err := cmd.Err(); err != nil && err != redis.Nil {
				require.Regexp(tr.s.t, "^(ERR|WRONGTYPE) ", err.Error(), "%v", cmd)
			}
		}
	}
}

// settle waits until the short-lived keys are gone, and sees to it that no other ends
// before the test does.
func (tr *traffic) settle() {
	tr.s.t.Helper()
	for _, db := range tr.dbs {
		eventually(tr.s.t, "the short-lived keys are gone", func() bool {
			left := 0
			for _, key := range db.Keys(ctx, "short:*").Val() { // looking at a key is what expires it
				left += int(db.Exists(ctx, key).Val())
			}
			return left == 0
		})
		p, keys := db.Pipeline(), db.Keys(ctx, "*").Val()
		for _, key := range keys {
			p.PTTL(ctx, key)
		}
		cmds, err := p.Exec(ctx)
		require.NoError(tr.s.t, err)
		for i, cmd := range cmds {
			if ttl := cmd.(*redis.DurationCmd).Val(); ttl >= 0 && ttl < 20*time.Minute {
				db.Del(ctx, keys[i])
			}
		}
	}
}

// dataset returns every key of databases 0 and 3 with its type, expiry and value.
func (s *server) dataset() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	conn := s.Conn()
	defer conn.Close()
	for _, db := range []int{3, 0} { // it goes back into the pool with 0
		require.NoError(s.t, conn.Select(ctx, db).Err())
		keys, err := conn.Keys(ctx, "*").Result()
		require.NoError(s.t, err)
		p := conn.Pipeline()
		for _, key := range keys {
			p.Type(ctx, key)
			p.Do(ctx, "PEXPIRETIME", key)
			p.HGetAll(ctx, key)
			p.Get(ctx, key)
			p.ZRangeWithScores(ctx, key, 0, -1)
		}
		cmds, _ := p.Exec(ctx) // most of the reads are of the wrong type
		for i, key := range keys {
			one := cmds[5*i : 5*i+5]
			kind := one[0].(*redis.StatusCmd).Val()
			value := ""
			switch kind {
			case "hash":
				value = fmt.Sprintf("%q", one[2].(*redis.MapStringStringCmd).Val()) // sorted by name
			case "string":
				value = fmt.Sprintf("%q", one[3].(*redis.StringCmd).Val())
			case "zset":
				for _, z := range one[4].(*redis.ZSliceCmd).Val() {
					value += fmt.Sprintf("%.17g %q, ", z.Score, z.Member)
				}
			}
			all[fmt.Sprintf("%d %s", db, key)] = fmt.Sprint(kind, " ", one[1].(*redis.Cmd).Val(), " ", value)
		}
	}
	return all
}

// same compares two data sets and shows the first few keys that differ.
func same(t testing.TB, want, got map[string]string, where string) {
	t.Helper()
	differ := 0
	for key := range want {
		if want[key] != got[key] {
			if differ++; differ <= 5 {
				t.Errorf("%s: %s is %q, want %q", where, key, got[key], want[key])
			}
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			if differ++; differ <= 5 {
				t.Errorf("%s: %s is %q, and should not be there", where, key, got[key])
			}
		}
	}
	assert.Zero(t, differ, "%s: keys that differ, of %d", where, len(want))
}
