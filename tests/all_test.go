package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAll_replies(t *testing.T) {
	s := startStill(t)
	for i, c := range []struct{ call, want string }{
		// Two limits on one user: two cells of one key.
		{"GO.ALL u THROTTLE 9 10 360000 THROTTLE 999 1 3600 1", "[0 10 9 -1 36000 0 [0 10 9 -1 36000] [0 1000 999 -1 3600]]"},
		{"GO.ALL u THROTTLE 9 10 360000 9 THROTTLE 999 1 3600 9", "[0 10 0 -1 360000 0 [0 10 0 -1 360000] [0 1000 990 -1 36000]]"},
		// The first limit denies. The second would admit, and takes nothing.
		{"GO.ALL u THROTTLE 9 10 360000 THROTTLE 999 1 3600", "[1 10 0 36000 360000 0 [1 10 0 36000 360000] [0 1000 990 -1 36000]]"},
		// The limit with the longest wait decides, the first one of equals.
		{"GO.ALL u THROTTLE 9 10 360000 1 THROTTLE 9 1 3600 1", "[1 10 0 36000 360000 0 [1 10 0 36000 360000] [1 10 0 3600 36000]]"},
		{"GO.ALL u THROTTLE 9 10 360000 1 THROTTLE 9 1 3600 10", "[1 10 0 36000 360000 0 [1 10 0 36000 360000] [1 10 0 36000 36000]]"},
		{"GO.ALL u THROTTLE 9 10 360000 2 THROTTLE 9 1 3600 10", "[1 10 0 72000 360000 0 [1 10 0 72000 360000] [1 10 0 36000 36000]]"},
		{"GO.ALL v THROTTLE 0 1 60 KEY u THROTTLE 9 10 360000 THROTTLE 9 1 3600 9",
			"[1 10 0 36000 360000 1 [0 1 1 -1 0] [1 10 0 36000 360000] [1 10 0 32400 36000]]"},
		// "Never" is the longest wait.
		{"GO.ALL u THROTTLE 9 10 360000 1 THROTTLE 9 1 3600 11", "[1 10 0 -1 36000 1 [1 10 0 36000 360000] [1 10 0 -1 36000]]"},
		{"GO.ALL u THROTTLE 9 10 360000 11 THROTTLE 9 1 3600 11", "[1 10 0 -1 360000 0 [1 10 0 -1 360000] [1 10 0 -1 36000]]"},
		// A refund in a denied call gives nothing back. A refund is always admitted by its own clause.
		{"GO.ALL u THROTTLE 9 10 360000 -5 THROTTLE 9 1 3600 1", "[1 10 0 3600 36000 1 [0 10 0 -1 360000] [1 10 0 3600 36000]]"},
		{"GO.ALL u THROTTLE 9 10 360000 -5 THROTTLE 9 1 3600 -1", "[0 10 1 -1 32400 1 [0 10 5 -1 180000] [0 10 1 -1 32400]]"},
		// The first cell of a key is the cell of GO.THROTTLE.
		{"GO.THROTTLE u 9 10 360000", "[0 10 4 -1 216000]"},
		{"GO.ALL u THROTTLE 9 10 360000 0", "[0 10 4 -1 216000 0 [0 10 4 -1 216000]]"},
		// A cell stays when another becomes empty. The key stays while one cell is in use.
		{"go.all u throttle 9 10 360000 -10 Throttle 9 1 3600 0", "[0 10 1 -1 32400 1 [0 10 10 -1 0] [0 10 1 -1 32400]]"},
		{"GO.ALL u THROTTLE 0 1 60 0 THROTTLE 9 1 3600 0 THROTTLE 0 1 60 0", "[0 1 1 -1 0 0 [0 1 1 -1 0] [0 10 1 -1 32400] [0 1 1 -1 0]]"},
		{"EXISTS u", "1"},
		{"GO.ALL u THROTTLE 9 10 360000 0 THROTTLE 9 1 3600 -10", "[0 10 10 -1 0 0 [0 10 10 -1 0] [0 10 10 -1 0]]"},
		{"EXISTS u v", "0"},
		// Only the third cell is in use. The cells before it exist and are empty.
		{"GO.ALL u THROTTLE 0 1 60 0 THROTTLE 0 1 60 0 THROTTLE 9 1 3600", "[0 1 1 -1 0 0 [0 1 1 -1 0] [0 1 1 -1 0] [0 10 9 -1 3600]]"},
		{"HLEN u", "6"},
		{"GO.THROTTLE u 9 1 3600", "[0 10 9 -1 3600]"},
		{"DEL u", "1"},

		// One limit of each kind, and each is the limit of its own command.
		{"GO.ALL t THROTTLE 9 1 3600 KEY w WINDOW 5 3600 2 KEY q QUOTA 20 3600 3 KEY l LEASE 2 3600 a",
			"[0 2 1 -1 3600 3 [0 10 9 -1 3600] [0 5 3 -1 3600] [0 20 17 -1 3600] [0 2 1 -1 3600 0]]"},
		{"GO.THROTTLE_RO t 9 1 3600 0", "[0 10 9 -1 3600]"},
		{"GO.WINDOW_RO w 5 3600 0", "[0 5 3 -1 3600]"},
		{"GO.QUOTA_RO q 20 3600 0", "[0 20 17 -1 3600]"},
		{"GO.LEASE_RO l 2 3600 a", "[0 2 1 -1 3600 1]"},
		{"GO.LEASE l 2 3600 b", "[0 2 0 -1 3600 0]"},
		// The lease denies, so no other clause takes anything. Each tells what it has left.
		{"GO.ALL t THROTTLE 9 1 3600 KEY w WINDOW 5 3600 2 KEY q QUOTA 20 3600 3 KEY l LEASE 2 3600 c",
			"[1 2 0 3600 3600 3 [0 10 9 -1 3600] [0 5 3 -1 3600] [0 20 17 -1 3600] [1 2 0 3600 3600 0]]"},
		// A holder renews its lease, but not if another clause denies.
		{"GO.ALL l LEASE 2 7200 a KEY w WINDOW 5 3600 4", "[1 5 3 3600 3600 1 [0 2 0 -1 3600 1] [1 5 3 3600 3600]]"},
		{"GO.LEASE_RO l 2 60 b", "[0 2 0 -1 3600 1]"},
		{"GO.ALL l LEASE 2 7200 a KEY w WINDOW 5 3600 3", "[0 2 0 -1 7200 0 [0 2 0 -1 7200 1] [0 5 0 -1 3600]]"},
		{"GO.LEASE_RO l 2 60 b", "[0 2 0 -1 7200 1]"},
		// EXACT, ALIGN and an omitted quantity.
		{"GO.ALL w2 WINDOW 5 3600 EXACT KEY q2 QUOTA 9 3600 2 KEY w3 WINDOW 4 3600",
			"[0 4 3 -1 3600 2 [0 5 4 -1 3600] [0 9 7 -1 3600] [0 4 3 -1 3600]]"},
		// A key may be named KEY, MS or like a clause, and so may an id.
		{"GO.ALL KEY LEASE 2 3600 KEY KEY MS LEASE 2 3600 MS KEY THROTTLE THROTTLE 1 1 3600 KEY LEASE LEASE 2 3600 LEASE",
			"[0 2 1 -1 3600 0 [0 2 1 -1 3600 0] [0 2 1 -1 3600 0] [0 2 1 -1 3600] [0 2 1 -1 3600 0]]"},
		{"GO.RELEASE KEY KEY MS", "1"},
		{"GO.RELEASE MS KEY MS", "1"},
		{"GO.RELEASE LEASE LEASE", "1"},
		{"EXISTS KEY MS THROTTLE LEASE", "1"},
	} {
		assert.Equal(t, c.want, s.ask(c.call), "step %d: %s", i, c.call)
	}
	// With MS all times are milliseconds. ALIGN's offset is in the unit of the period.
	reply, err := s.Do(ctx, fields("GO.ALL mt THROTTLE 9 1 3600000 KEY mq QUOTA 20 3600000 ALIGN 5 KEY ml LEASE 2 3600000 a ms")...).Slice()
	require.NoError(t, err)
	assert.Equal(t, []any{int64(0), int64(10), int64(9), int64(-1), int64(3_600_000)}, reply[6])
	_, end := s.quota("mq")
	assert.EqualValues(t, 5000, end%3_600_000_000)
	assert.Equal(t, []any{int64(0), int64(2), int64(1), int64(-1), int64(3_600_000), int64(0)}, reply[8])
}

// A gateway to a language model limits requests per minute, tokens per minute, money per day
// and concurrent calls. A refused request costs nothing, whichever limit refuses it.
func TestAll_gateway(t *testing.T) {
	s := startStill(t)
	const day = 86_400
	call := func(tokens, cents int, id string) string {
		return s.ask(fmt.Sprintf("GO.ALL {bob}rpm THROTTLE 59 1 %[1]s KEY {bob}tpm THROTTLE 9999 10000 3000000000 %[2]d "+
			"KEY {bob}spend QUOTA 500 %[4]d %[3]d KEY {bob}calls LEASE 3 3600 %[5]s", frozen, tokens, cents, 30*day, id))
	}
	left := func() (rpm, tpm, spend, calls int64) {
		t.Helper()
		rpm = ints(t, s.Do(ctx, fields("GO.THROTTLE_RO {bob}rpm 59 1 "+frozen+" 0")...))[2]
		tpm = ints(t, s.Do(ctx, fields("GO.THROTTLE_RO {bob}tpm 9999 10000 3000000000 0")...))[2]
		spend = ints(t, s.Do(ctx, "GO.QUOTA_RO", "{bob}spend", 500, 30*day, 0))[2]
		return rpm, tpm, spend, 3 - s.ZCard(ctx, "{bob}calls").Val()
	}
	want := func(what string, rpm, tpm, spend, calls int64) {
		t.Helper()
		a, b, c, d := left()
		assert.Equal(t, []int64{rpm, tpm, spend, calls}, []int64{a, b, c, d}, what)
	}
	index := func(reply string) (limited, i int) {
		t.Helper()
		var skip int
		_, err := fmt.Sscanf(reply, "[%d %d %d %d %d %d", &limited, &skip, &skip, &skip, &skip, &i)
		require.NoError(t, err, reply)
		return limited, i
	}
	for i, c := range []struct {
		tokens, cents int
		id            string
		limited, by   int // by: the index of the clause that decides
		left          [4]int64
	}{
		{4000, 100, "a", 0, 3, [4]int64{59, 6000, 400, 2}},
		{7000, 100, "b", 1, 1, [4]int64{59, 6000, 400, 2}},
		{10_001, 100, "b", 1, 1, [4]int64{59, 6000, 400, 2}},
		{6000, 401, "b", 1, 2, [4]int64{59, 6000, 400, 2}},
		{1000, 100, "b", 0, 3, [4]int64{58, 5000, 300, 1}},
		{1000, 100, "c", 0, 3, [4]int64{57, 4000, 200, 0}},
		{1000, 100, "d", 1, 3, [4]int64{57, 4000, 200, 0}},
		{1000, 100, "a", 0, 3, [4]int64{56, 3000, 100, 0}}, // the next request of a call that goes on
	} {
		limited, by := index(call(c.tokens, c.cents, c.id))
		assert.Equal(t, []int{c.limited, c.by}, []int{limited, by}, "step %d", i)
		want(fmt.Sprint("step ", i), c.left[0], c.left[1], c.left[2], c.left[3])
	}
	// The estimate was too high: the caller gives back tokens and money, and releases its call.
	s.must("GO.ALL {bob}tpm THROTTLE 9999 10000 3000000000 -500 KEY {bob}spend QUOTA 500 2592000 -30")
	assert.Equal(t, "1", s.must("GO.RELEASE {bob}calls a"))
	want("settled", 56, 3500, 130, 1)
}

func TestAll_atMost32Clauses(t *testing.T) {
	s := startStill(t)
	for _, keys := range []int{1, 32} { // 32 cells of one key, or 32 keys
		call := func(n int) string {
			all := make([]string, min(n, keys))
			for i := range n {
				if i < keys {
					all[i] = fmt.Sprint("k", i)
				}
				all[i%keys] += " THROTTLE 9 7 36000 1"
			}
			return flat(s.Do(ctx, allOf(all...)...).Result())
		}
		require.NoError(t, s.FlushAll(ctx).Err())
		for i := range 10 {
			one := fmt.Sprintf("0 10 %d -1 %d", 9-i, (36000*(i+1)+6)/7)
			assert.Equal(t, "["+one+" 0"+strings.Repeat(" ["+one+"]", 32)+"]", call(32))
		}
		before := s.dataset()
		require.Len(t, before, keys)
		assert.True(t, strings.HasPrefix(call(32), "[1 10 0 5143 51429 0 [1 10 0 5143 "), call(32))
		assert.Equal(t, "ERR at most 32 clauses", call(33))
		assert.Equal(t, "ERR at most 32 clauses", call(32*keys+1))
		same(t, before, s.dataset(), "refused")
		// A call of GO.THROTTLE keeps all cells of the key.
		s.must("GO.THROTTLE k0 9 7 36000 -1")
		assert.EqualValues(t, 4*32/keys, s.HLen(ctx, "k0").Val())
	}
	// A hash with more cells is not ours.
	p := s.Pipeline()
	for i := range 33 {
		p.HSet(ctx, "many", 4*i, s.now(), 4*i+1, 3600)
	}
	_, err := p.Exec(ctx)
	require.NoError(t, err)
	// Fields 128 and 129, those of its last cell, are the lockouts of the first two cells.
	assert.Equal(t, "ERR the rate limiter at this key is damaged", s.ask("GO.ALL many THROTTLE 9 7 36000"))
	assert.EqualValues(t, 66, s.HLen(ctx, "many").Val())
}

// clausesOf returns random clauses of a few keys, and the call that has them.
func clausesOf(random *rand.Rand, rates [][2]int64, leases bool) (all []clause, call []any) {
	var groups []string
	keys := []clause{{kind: "THROTTLE", key: "a"}, {kind: "THROTTLE", key: "b"}, {kind: "WINDOW", key: "w"}, {kind: "QUOTA", key: "q"}}
	if leases {
		keys = append(keys, clause{kind: "LEASE", key: "l"})
	}
	for _, i := range random.Perm(len(keys))[:1+random.IntN(len(keys))] {
		c := keys[i]
		n := 1
		if c.kind == "THROTTLE" {
			n += random.IntN(3)
		}
		group := c.key
		for cell := range n {
			c.cell, c.rate = cell, rates[(int(c.key[0])+cell)%len(rates)]
			c.limit = []int64{5, 10, 20}[random.IntN(3)]
			c.quantity = []int64{0, 1, 1, 1, 2, 3, 3, 7, 21, -2, -30}[random.IntN(11)]
			c.id = fmt.Sprint("id", random.IntN(25))
			all = append(all, c)
			group += " " + c.words()
		}
		groups = append(groups, group)
	}
	return all, allOf(groups...)
}

// Random calls at constant rates. Decisions equal those of a model, and a denied call changes
// no byte of its keys.
func TestAll_allOrNothing(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(5, 6))
	script := `
		local function state()
			local all = {}
			for i, key in ipairs(KEYS) do
				all[i] = (redis.call('DUMP', key) or '') .. ' ' .. redis.call('PEXPIRETIME', key)
			end
			return table.concat(all, '|')
		end
		local before = state()
		local reply = redis.call(unpack(ARGV))
		return {reply, before == state() and 1 or 0}`
	sha := s.ScriptLoad(ctx, script).Val()
	for name, rates := range map[string][][2]int64{ // by key and cell
		"frozen": {{1, 3_000_000}, {7, 21_000_001}, {3, 10_000_000}}, // nothing drains during the test
		"moving": {{100, 1}, {700, 3}, {1_000_003, 2000}},
	} {
		require.NoError(t, s.FlushAll(ctx).Err())
		m, denials, admissions, mixed, lockedOut := newModel(), 0, 0, 0, 0
		for i := range 12_000 {
			if i%40 == 39 { // otherwise the window, the quota and the leases deny most calls
				ids := fields("GO.RELEASE l")
				for j := range 12 {
					ids = append(ids, fmt.Sprint("id", 2*j))
					delete(m.held["LEASE l 0"], fmt.Sprint("id", 2*j))
				}
				require.NoError(t, s.Do(ctx, ids...).Err())
				m.used["LEASE l 0"] = int64(len(m.held["LEASE l 0"]))
			}
			switch i % 200 { // denied calls of a and b begin lockouts, which stand until the keys are deleted
			case 100, 120:
				m.lockout(s, "a", rates)
				m.lockout(s, "b", rates)
			case 160:
				require.NoError(t, s.Del(ctx, "a", "b").Err())
				m.forget("a", "b")
			}
			force := i%9 == 0
			clauses, call := clausesOf(random, rates, !force)
			if force {
				call = append(call, "FORCE")
				for j := range clauses {
					clauses[j].force = true
				}
			}
			reply, err := s.EvalSha(ctx, sha, []string{"a", "b", "w", "q", "l"}, call...).Slice()
			require.NoError(t, err)
			got := reply[0].([]any)
			if got[0] == int64(1) {
				denials++
				lockedOut += min(len(m.locked), 1)
				require.Equal(t, int64(1), reply[1], "%v changed something: %v", call, got)
			} else {
				admissions++
				if len(clauses) > 2 {
					mixed++
				}
			}
			consistent(t, call, got, clauses)
			if name != "frozen" {
				continue
			}
			denied, left, renewed := m.call(clauses)
			for i, c := range clauses {
				inner := got[6+i].([]any)
				require.Equal(t, denied[i], inner[0] == int64(1), "%v: %v, %d", call, got, i)
				require.Equal(t, left[i], inner[2], "%v: %v, %d", call, got, i)
				if c.kind == "LEASE" {
					require.Equal(t, renewed[i], inner[5] == int64(1), "%v: %v, %d", call, got, i)
				}
			}
		}
		t.Logf("%s: %d admitted, %d of them with more than two clauses, %d denied, %d of them while a lockout stood",
			name, admissions, mixed, denials, lockedOut)
		assert.Greater(t, min(admissions, denials), 1500, name)
		assert.Greater(t, mixed, 100, name)
		assert.Greater(t, lockedOut, 1000, name)
	}
}

func TestAll_manyClients(t *testing.T) {
	s := start(t, options{})
	var admitted [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			for admitted[0].Load()+admitted[1].Load() <= 1000 {
				// Half of the clients take from two limits, the others from the second alone.
				groups := []string{"a WINDOW 300 " + frozen, "both THROTTLE 499 1 " + frozen}
				reply, err := conn.Do(ctx, allOf(groups[i%2:]...)...).Slice()
				if !assert.NoError(t, err) || reply[0] == int64(1) {
					return
				}
				admitted[i%2].Add(1)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, admitted[0].Load(), int64(300))
	assert.EqualValues(t, 500, admitted[0].Load()+admitted[1].Load())
	assert.Equal(t, int64(300)-admitted[0].Load(), ints(t, s.Do(ctx, "GO.WINDOW_RO", "a", 300, frozen, 0))[2])
}
