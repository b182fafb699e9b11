package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// traffic sends random calls of every command, and commands that users send beside them. Its
// long-lived keys outlive the test. Its short-lived keys expire within moments.
type traffic struct {
	s      *server
	r      *rand.Rand
	dbs    []*redis.Client
	limits map[string][3]int64 // the parameters of the last call on a key
	placed int                 // states of farStates that the server accepted
}

// longKeys is the number of long-lived keys of each kind. There are a tenth as many
// short-lived keys.
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

// oneIn returns true once in n calls, on average.
func (tr *traffic) oneIn(n int) bool { return tr.r.IntN(n) == 0 }

// key returns a key of a kind, and whether the key is long-lived.
func (tr *traffic) key(kind string) (key string, long bool) {
	if tr.oneIn(10) {
		return fmt.Sprintf("short:%s:%d", kind, tr.r.IntN(longKeys[kind]/10)), false
	}
	return fmt.Sprintf("long:%s:%d", kind, tr.r.IntN(longKeys[kind])), true
}

// period returns a period in ms: months for a long-lived key, a few ms for another.
func (tr *traffic) period(long bool) int64 {
	if long {
		return 1000 * (10_000_000 + tr.r.Int64N(10_000_000))
	}
	return 1 + tr.r.Int64N(20)
}

// params returns the parameters of a call, mostly those of the last call on the key.
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
			period *= 150 // each unit must drain slowly, also at a high count
		}
		return [3]int64{burst, count, period}
	})
	if long {
		rate[0] += tr.pick(0, 0, 0, 1, 40) // another caller of the key has another burst
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

// inUnits appends a period, given in ms, and a quantity. It writes the period in seconds or
// in ms. RESERVE and LOCKOUT get a time: mostly a short one, else up to a period.
func (tr *traffic) inUnits(words []any, period int64, options ...string) []any {
	if period%1000 == 0 && !tr.oneIn(6) {
		period /= 1000
	} else {
		options = append(options, "ms")
	}
	words = append(words, period)
	for i, option := range options {
		if option == "RESERVE" || option == "LOCKOUT" {
			options[i] = fmt.Sprint(option, " ", 1+tr.r.Int64N(min(period, tr.pick(3, 3, 3, period))))
		}
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

// sometimes returns the option once in five calls, otherwise "".
func (tr *traffic) sometimes(option string) string {
	if tr.oneIn(5) {
		return option
	}
	return ""
}

// mode returns one of the options that exclude each other, or "". Debt of a short-lived limiter
// could outlive the test, so only a long-lived one gets into debt.
func (tr *traffic) mode(long bool) string {
	modes := []string{"UPTO", "UPTO", "UPTO", "RESERVE", "RESERVE", "LOCKOUT", "FORCE"}
	if !long {
		modes = modes[:6]
	}
	if tr.oneIn(3) {
		return modes[tr.r.IntN(len(modes))]
	}
	return ""
}

// upToOrForce returns one of the options, or "".
func (tr *traffic) upToOrForce() string {
	return []string{"UPTO", "UPTO", "FORCE", "", "", "", "", "", "", ""}[tr.r.IntN(10)]
}

// call returns the words of one call, now and then under the name of the read-only twin, or a GO.INFO.
func (tr *traffic) call() []any {
	words := tr.writing()
	if _, ok := samples[fmt.Sprint(words[0], "_RO")]; ok && tr.oneIn(15) {
		words[0] = fmt.Sprint(words[0], "_RO")
	}
	if tr.oneIn(50) {
		return []any{"GO.INFO", words[1]}
	}
	return words
}

// writing returns the words of one call of a command that may write.
func (tr *traffic) writing() []any {
	switch n := tr.r.IntN(20); {
	case n < 8:
		key, long := tr.key("hash")
		rate := tr.rate(key, long)
		if rate[2]%1000 == 0 && tr.oneIn(6) {
			return []any{"CL.THROTTLE", key, rate[0], rate[1], rate[2] / 1000, tr.quantity()}
		}
		return tr.inUnits([]any{"GO.THROTTLE", key, rate[0], rate[1]}, rate[2], tr.mode(long))
	case n < 12:
		key, long := tr.key("log")
		p := tr.window(key, long)
		if tr.oneIn(20) {
			p[1] = tr.period(false) // for this call alone: the call removes older entries
		}
		return tr.inUnits([]any{"GO.WINDOW", key, p[0]}, p[1], tr.upToOrForce(), tr.sometimes("EXACT"))
	case n < 15:
		key, long := tr.key("quota")
		p := tr.fixed(key, long)
		return tr.inUnits([]any{"GO.QUOTA", key, p[0]}, p[1], tr.upToOrForce(),
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

// several returns a call of GO.ALL: one to four keys of any kind, a hash with up to three
// cells. Now and then FORCE charges them all. Then all are long-lived, and none is a lease.
func (tr *traffic) several() []any {
	var groups []string
	force := tr.oneIn(10)
	taken := map[string]bool{}
	for range 1 + tr.r.IntN(4) {
		kind := []string{"hash", "hash", "log", "quota", "lease"}[tr.r.IntN(5)]
		key, long := tr.key(kind)
		if taken[key] || force && (!long || kind == "lease") {
			continue
		}
		taken[key] = true
		groups = append(groups, key+" "+tr.clauses(kind, key, long))
	}
	if len(groups) == 0 {
		return tr.several()
	}
	if force {
		groups[len(groups)-1] += " FORCE"
	}
	return append(allOf(groups...), "MS")
}

// clauses returns the clauses of one key of GO.ALL, with times in ms.
func (tr *traffic) clauses(kind, key string, long bool) (all string) {
	switch kind {
	case "log":
		p := tr.window(key, long)
		return fmt.Sprint("WINDOW ", p[0], " ", p[1], " ", tr.quantity(), " ", tr.sometimes("EXACT"))
	case "quota":
		p := tr.fixed(key, long)
		return fmt.Sprint("QUOTA ", p[0], " ", p[1], " ", tr.quantity(), " ", tr.sometimes(fmt.Sprint("ALIGN ", tr.r.IntN(100)-50)))
	case "lease":
		return fmt.Sprint("LEASE ", tr.pick(1, 3, 10, 10), " ", tr.period(long && !tr.oneIn(5)), " ", tr.id())
	}
	for cell := range 1 + tr.r.IntN(3) {
		rate := tr.rate(fmt.Sprint(key, cell), long)
		all += fmt.Sprint(" THROTTLE ", rate[0], " ", rate[1], " ", rate[2], " ", tr.quantity())
	}
	return all
}

// window returns limit and period in ms of a sliding window.
func (tr *traffic) window(key string, long bool) [3]int64 {
	return tr.params(key, func() [3]int64 {
		return [3]int64{tr.pick(1, 5, 100, 120, 121, 1000, 1_000_000), tr.period(long)}
	})
}

// fixed returns limit and period in ms of a fixed window.
func (tr *traffic) fixed(key string, long bool) [3]int64 {
	return tr.params(key, func() [3]int64 { return [3]int64{tr.pick(1, 5, 100, 100_000), tr.period(long)} })
}

// byHand returns a command that a user may send beside the calls of the module, mostly nil.
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
		return []any{"SET", key, tat.UnixNano(), "PXAT", tat.UnixMilli() + 1e9} // a key of redis-cell
	case 11:
		if tr.r.IntN(4) > 0 {
			return nil
		}
		switch kind { // calls on the key are errors until the key is deleted
		case "hash":
			return []any{"HSET", key, "name", "Ann"}
		case "quota":
			return []any{"SET", key, "text", "KEEPTTL"}
		}
		return []any{"ZADD", key, tr.pick(0, 1, 4e15, math.MaxInt64), "Ann"}
	case 12:
		if kind != "hash" {
			return nil
		}
		delete(tr.limits, key)
		states := append(farStates(), lockedStates()...)
		return append([]any{"EVAL", placeState, 1, key}, states[tr.r.IntN(len(states))]...)
	case 13, 14:
		return []any{"GO.THROTTLE", key, "x", 1, 1}
	case 15, 16:
		return []any{"RENAME", key, other()}
	case 17:
		return []any{"COPY", key, other(), "REPLACE"}
	case 18: // the key is mostly of another kind
		return []any{"GO.WINDOW", key, 10, 10_000_000}
	case 19:
		return []any{"GO.LEASE", key, 10, 10_000_000, "a"}
	case 20:
		return []any{"GO.ALL", key, "QUOTA", 10, 10_000_000, "KEY", other() + "x", "LEASE", 10, "0", "a"}
	case 21, 22, 23, 24, 25, 26, 27, 28:
		return tr.sampled()
	}
	return nil
}

// sampled returns the sample of any command of the table, or one of its wrong calls.
func (tr *traffic) sampled() []any {
	row := commands.Table[tr.r.IntN(len(commands.Table))]
	if wrong := corpus.Wrong[row.Name]; row.NoKey || len(wrong) > 0 && tr.oneIn(10) {
		return anyOf(wrong[tr.r.IntN(len(wrong))])
	}
	return on(corpus.Samples[row.Name].Call, fmt.Sprint("sample:", row.Name, ":", tr.r.IntN(3)))
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
			// Replies may be errors, but connections must not break.
			if args := cmd.Args(); args[0] == "EVAL" && args[1] == placeState {
				require.NoError(tr.s.t, cmd.Err(), "the server refuses a valid state: %v", args[3:])
				tr.placed++
			}
			if err := cmd.Err(); err != nil && err != redis.Nil {
				require.Regexp(tr.s.t, "^(ERR|WRONGTYPE) ", err.Error(), "%v", cmd)
			}
		}
	}
}

// settle waits until the short-lived keys have expired. It deletes other keys that would
// expire during the test.
func (tr *traffic) settle() {
	tr.s.t.Helper()
	for _, db := range tr.dbs {
		eventually(tr.s.t, "the short-lived keys have expired", func() bool {
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
