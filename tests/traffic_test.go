package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// traffic sends random calls of every command, and commands that users send beside them. The parameters of a key follow from
// its number, and sometimes change. Keys of databases 0 and 3 last for months. Others, short:*, expire within moments.
type traffic struct {
	s   *server
	r   *rand.Rand
	dbs []*redis.Client
}

// keysOf is the number of keys of each kind that last.
var keysOf = map[string]int{"hash": 1500, "log": 300, "quota": 300, "lease": 150}

func newTraffic(s *server, seed uint64) *traffic {
	tr := &traffic{s: s, r: rand.New(rand.NewPCG(seed, 0))}
	for _, db := range []int{0, 3} {
		c := s.run.Client(func(o *redis.Options) { o.DB = db })
		s.t.Cleanup(func() { c.Close() })
		tr.dbs = append(tr.dbs, c)
	}
	return tr
}

// oneIn returns true once in n calls, on average.
func (tr *traffic) oneIn(n int) bool { return tr.r.IntN(n) == 0 }

func (tr *traffic) pick(of ...string) string { return of[tr.r.IntN(len(of))] }

// limiter is one key with its parameters.
type limiter struct {
	key    string
	period int // in ms
	short  bool
	n      int // the number in its name, now and then another one
}

func (tr *traffic) limiter(kind string) limiter {
	n := tr.r.IntN(keysOf[kind])
	l := limiter{key: fmt.Sprint("long:", kind, ":", n), n: n, period: 10_000_000_000 + 1000*n*n}
	if tr.oneIn(12) {
		l.n = tr.r.IntN(1000)
	}
	if tr.oneIn(10) {
		l.key, l.period, l.short = fmt.Sprint("short:", kind, ":", n%20), 1+l.n%20, true
	}
	return l
}

func of[T any](n int, values ...T) T { return values[n%len(values)] }

// limit returns a limit that follows from the number.
func (l limiter) limit() int { return of(l.n, 1, 5, 100, 120, 121, 1000, 1_000_000) }

// rate returns max_burst, count and period. Each unit drains slowly, even at a high count.
func (l limiter) rate() string {
	burst, count := of(l.n, 0, 1, 4, 15, 99, 999), of(l.n/7, 1, 2, 3, 7, 10, 64, 997, 1_000_003)
	if l.short {
		return fmt.Sprint(burst%9, " ", count, " ", l.period)
	}
	if count == 1_000_003 {
		return fmt.Sprint(burst, " ", count, " ", l.period*150)
	}
	return fmt.Sprint(burst, " ", count, " ", l.period)
}

func (tr *traffic) quantity() string {
	return tr.pick("1", "1", "1", "1", "0", "-1", "-30", "-1000000", "5000", fmt.Sprint(1+tr.r.IntN(40)), fmt.Sprint(1+tr.r.IntN(40)))
}

// mode returns an option of GO.THROTTLE, or "". Debt of a key that is short could outlive the test.
func (tr *traffic) mode(l limiter) string {
	some := fmt.Sprint(1 + tr.r.IntN(of(tr.r.IntN(4), 3, 3, 3, l.period)))
	mode := tr.pick("", "", "", "", "UPTO", "RESERVE "+some, "LOCKOUT "+some, "FORCE")
	if l.short && mode == "FORCE" {
		return ""
	}
	return mode
}

func (tr *traffic) id() string { return fmt.Sprintf("id\xff%d", tr.r.IntN(15)) }

// call returns one call, now and then under the name of its read-only twin.
func (tr *traffic) call() []any {
	twin, h := tr.pick("", "", "", "", "", "", "", "", "", "_RO"), tr.limiter("hash")
	switch n := tr.r.IntN(20); {
	case n < 7:
		return fields(fmt.Sprint("GO.THROTTLE", twin, " ", h.key, " ", h.rate(), " ", tr.quantity(), " ", tr.mode(h), " MS"))
	case n == 7:
		return fields(fmt.Sprint("CL.THROTTLE ", h.key, " ", of(h.n, 0, 4, 99), " ", of(h.n, 1, 7), " ", h.period/1000+1, " ", tr.quantity()))
	case n < 17:
		kind := of(n, "hash", "log", "quota", "lease")
		l := tr.limiter(kind)
		verb, rest, _ := strings.Cut(strings.TrimSpace(tr.clause(kind, l)), " ")
		return fields("GO." + verb + twin + " " + l.key + " " + rest + " MS")
	case n == 17:
		return fields(fmt.Sprint("GO.RELEASE ", tr.limiter("lease").key, " ", tr.id(), " ", tr.id()))
	case n == 18:
		return tr.several(twin)
	}
	return fields("GO.INFO " + h.key)
}

// clause returns a clause of GO.ALL, with times in ms.
func (tr *traffic) clause(kind string, l limiter) string {
	switch kind {
	case "log":
		return fmt.Sprint("WINDOW ", l.limit(), " ", l.period, " ", tr.quantity(), " ", tr.pick("", "", "EXACT"))
	case "quota":
		return fmt.Sprint("QUOTA ", l.limit(), " ", l.period, " ", tr.quantity(), " ", tr.pick("", "", "ALIGN -7"))
	case "lease":
		return fmt.Sprint("LEASE ", of(l.n, 1, 3, 10), " ", l.period, " ", tr.id())
	}
	return fmt.Sprint("THROTTLE ", l.rate(), " ", tr.quantity(), " ")
}

// several returns a call of GO.ALL: one to four keys of any kind, a hash with up to three cells.
func (tr *traffic) several(twin string) []any {
	var groups []string
	for _, i := range tr.r.Perm(4)[:1+tr.r.IntN(4)] {
		kind := of(i, "hash", "log", "quota", "lease")
		l := tr.limiter(kind)
		group := l.key + " " + tr.clause(kind, l)
		for kind == "hash" && tr.oneIn(2) && len(group) < 200 {
			group += tr.clause(kind, l)
		}
		groups = append(groups, group)
	}
	return append(fields("GO.ALL"+twin+" "+strings.Join(groups, " KEY ")), "MS")
}

// byHand returns a command that a user may send beside the calls of the module, mostly nil.
func (tr *traffic) byHand() []any {
	kind := tr.pick("hash", "hash", "hash", "log", "quota", "lease")
	key, other := fmt.Sprint("long:", kind, ":", tr.r.IntN(keysOf[kind])), fmt.Sprint("long:", kind, ":", tr.r.IntN(keysOf[kind]))
	now := time.Now().Unix()
	switch tr.r.IntN(250) {
	case 0, 1:
		return []any{"DEL", key}
	case 2, 3:
		return []any{"PERSIST", key}
	case 4, 5:
		return []any{"EXPIRE", key, 100_000 + tr.r.IntN(100_000_000)}
	case 6, 7:
		return []any{"RENAME", key, other}
	case 8, 9:
		return []any{"COPY", key, other, "REPLACE"}
	case 10: // a key of redis-cell
		return []any{"SET", "long:hash:7", (now + 10_000_000) * 1e9, "PXAT", (now + 20_000_000) * 1e3}
	case 11: // calls on the key are errors until the key is deleted
		return []any{tr.pick("HSET", "SET", "ZADD"), key, tr.pick("0", "1"), "Ann"}
	case 12: // a state at an end of its range, a lockout with it
		return []any{"HSET", key, 0, math.MaxInt64, 1, 3_153_600_000, 2, 1, 3, int64(1e12), 128, math.MaxInt64 - 1}
	case 13:
		return []any{"GO.THROTTLE", key, "x", 1, 1}
	case 14: // the key is mostly of another kind
		verb, rest, _ := strings.Cut(tr.clause(tr.pick("log", "quota", "lease"), limiter{period: 10_000_000_000}), " ")
		return fields("GO." + verb + " " + key + " " + rest + " MS")
	case 15, 16, 17, 18, 19, 20:
		row := commands.Table[tr.r.IntN(len(commands.Table))]
		if row.NoKey {
			return []any{"GO.TOP", "x"}
		}
		return samples[row.Name].on(fmt.Sprint("sample:", row.Name, ":", tr.r.IntN(3)))
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
				words = append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, words...)
			}
			p.Do(ctx, words...)
		}
		cmds, _ := p.Exec(ctx)
		for _, cmd := range cmds { // replies may be errors, but connections must not break
			if err := failure(cmd.Err()); err != nil {
				require.Regexp(tr.s.t, "^(ERR|WRONGTYPE) ", err.Error(), "%v", cmd)
			}
		}
	}
}

// settle waits until the short keys have expired. It deletes other keys that would expire during the test.
func (tr *traffic) settle() {
	tr.s.t.Helper()
	for _, db := range tr.dbs {
		eventually(tr.s.t, "the short keys have expired", func() bool {
			left := 0
			for _, key := range db.Keys(ctx, "short:*").Val() { // EXISTS makes the server delete an expired key
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

// rewrite rewrites the append-only file while calls arrive.
func rewrite(s *server) {
	s.t.Helper()
	require.NoError(s.t, s.BgRewriteAOF(ctx).Err())
	newTraffic(s, 7).run(2000)
	eventually(s.t, "the append-only file is rewritten", func() bool {
		return s.info("persistence", "aof_rewrite_in_progress") == "0" &&
			s.info("persistence", "aof_rewrite_scheduled") == "0"
	})
	require.Equal(s.t, "ok", s.info("persistence", "aof_last_bgrewrite_status"))
}
