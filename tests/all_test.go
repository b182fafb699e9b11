package tests

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// Random calls at constant rates against a model, from a script. Decisions equal those of a model, and a denied call changes
// no byte of its keys.
func TestAll_allOrNothing(t *testing.T) {
	lasts(t)
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

// Many clients at once get no unit more than the limits have.
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
