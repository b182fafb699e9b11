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

// limits builds a GO.MTHROTTLE call: keys and, for each, four words.
func limits(keys []string, of []string, options ...string) []any {
	return fields(fmt.Sprintf("GO.MTHROTTLE %d %s %s %s", len(keys), strings.Join(keys, " "),
		strings.Join(of, " "), strings.Join(options, " ")))
}

func TestMThrottle_replies(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct{ call, want string }{
		// Ten per second and a thousand per hour, on one user.
		{"GO.MTHROTTLE 2 u u 9 10 360000 1 999 1 3600 1", "[0 -1 -1 [0 10 9 -1 36000] [0 1000 999 -1 3600]]"},
		{"GO.MTHROTTLE 2 u u 9 10 360000 9 999 1 3600 9", "[0 -1 -1 [0 10 0 -1 360000] [0 1000 990 -1 36000]]"},
		// Denied by the first: the second would have been admitted, and took nothing.
		{"GO.MTHROTTLE 2 u u 9 10 360000 1 999 1 3600 1", "[1 36000 0 [1 10 0 36000 360000] [0 1000 990 -1 36000]]"},
		// The longest wait decides, and the first of equals.
		{"GO.MTHROTTLE 2 u u 9 10 360000 1 9 1 3600 1", "[1 36000 0 [1 10 0 36000 360000] [1 10 0 3600 36000]]"},
		{"GO.MTHROTTLE 2 u u 9 10 360000 1 9 1 3600 10", "[1 36000 0 [1 10 0 36000 360000] [1 10 0 36000 36000]]"},
		{"GO.MTHROTTLE 2 u u 9 10 360000 2 9 1 3600 10", "[1 72000 0 [1 10 0 72000 360000] [1 10 0 36000 36000]]"},
		{"GO.MTHROTTLE 3 v u u 0 1 60 1 9 10 360000 1 9 1 3600 9", "[1 36000 1 [0 1 1 -1 0] [1 10 0 36000 360000] [1 10 0 32400 36000]]"},
		// Never is longer than any.
		{"GO.MTHROTTLE 2 u u 9 10 360000 1 9 1 3600 11", "[1 -1 1 [1 10 0 36000 360000] [1 10 0 -1 36000]]"},
		{"GO.MTHROTTLE 2 u u 9 10 360000 11 9 1 3600 11", "[1 -1 0 [1 10 0 -1 360000] [1 10 0 -1 36000]]"},
		// A refund in a call that is denied gives nothing back.
		{"GO.MTHROTTLE 2 u u 9 10 360000 -5 9 1 3600 1", "[1 3600 1 [0 10 0 -1 360000] [1 10 0 3600 36000]]"},
		{"GO.MTHROTTLE 2 u u 9 10 360000 -5 9 1 3600 -1", "[0 -1 -1 [0 10 5 -1 180000] [0 10 1 -1 32400]]"},
		// The first cell is the one of GO.THROTTLE.
		{"GO.THROTTLE u 9 10 360000", "[0 10 4 -1 216000]"},
		{"GO.MTHROTTLE 1 u 9 10 360000 0", "[0 -1 -1 [0 10 4 -1 216000]]"},
		{"GO.MTHROTTLE 2 u u 9 10 360000000 0 9 1 3600000 0 ms", "[0 -1 -1 [0 10 4 -1 N] [0 10 1 -1 N]]"},
		// A cell stays when the other is void, and the key when one is left.
		{"GO.MTHROTTLE 2 u u 9 10 360000 -10 9 1 3600 0", "[0 -1 -1 [0 10 10 -1 0] [0 10 1 -1 32400]]"},
		{"GO.MTHROTTLE 3 u u u 0 1 60 0 9 1 3600 0 0 1 60 0", "[0 -1 -1 [0 1 1 -1 0] [0 10 1 -1 32400] [0 1 1 -1 0]]"},
		{"EXISTS u", "1"},
		{"GO.MTHROTTLE 2 u u 9 10 360000 0 9 1 3600 -10", "[0 -1 -1 [0 10 10 -1 0] [0 10 10 -1 0]]"},
		{"EXISTS u v", "0"},
		// The third cell alone: the ones before it are there, and void.
		{"GO.MTHROTTLE 3 u u u 0 1 60 0 0 1 60 0 9 1 3600 1", "[0 -1 -1 [0 1 1 -1 0] [0 1 1 -1 0] [0 10 9 -1 3600]]"},
		{"HLEN u", "6"},
		{"GO.THROTTLE u 9 1 3600", "[0 10 9 -1 3600]"},
	} {
		got := s.ask(c.call)
		if strings.Contains(c.want, "N") { // ms: the time is not the same in every run
			var a, b int
			_, err := fmt.Sscanf(got, "[0 -1 -1 [0 10 4 -1 %d] [0 10 1 -1 %d]]", &a, &b)
			require.NoError(t, err, got)
			assert.True(t, a > 215_900_000 && a <= 216_000_000 && b > 32_300_000 && b <= 32_400_000, got)
			continue
		}
		assert.Equal(t, c.want, got, c.call)
	}
}

func TestMThrottle_atMost128Limits(t *testing.T) {
	s := start(t, options{})
	for _, keys := range []int{1, 128} { // cells of one key, or keys
		call := func(n int) string {
			names, of := make([]string, n), make([]string, n)
			for i := range n {
				names[i], of[i] = fmt.Sprint("k", i%keys), "9 7 36000 1"
			}
			return flat(s.Do(ctx, limits(names, of)...).Result())
		}
		require.NoError(t, s.FlushAll(ctx).Err())
		for i := range 10 {
			want := "[0 -1 -1" + strings.Repeat(fmt.Sprintf(" [0 10 %d -1 %d]", 9-i, (36000*(i+1)+6)/7), 128) + "]"
			assert.Equal(t, want, call(128))
		}
		before := s.dataset()
		require.Len(t, before, keys)
		assert.True(t, strings.HasPrefix(call(128), "[1 5143 0 [1 10 0 5143 "), call(128))
		assert.Equal(t, "ERR numkeys must be between 1 and 128", call(129))
		assert.Equal(t, "ERR numkeys must be between 1 and 128", call(1000))
		same(t, before, s.dataset(), "refused")
		// A GO.THROTTLE on it keeps all cells.
		s.must("GO.THROTTLE k0 9 7 36000 -1")
		assert.EqualValues(t, 4*128/keys, s.HLen(ctx, "k0").Val())
	}
}

// cells is a model of limiters from which nothing drains while the test runs: units in
// use by key and by the position among the key's repeats.
type cells map[string]int64

// take tells whether all limits admit, what is left in each, and takes the units if so.
func (c cells) take(keys []string, limit, quantity []int64) (denied []bool, left []int64) {
	seen, names := map[string]int{}, make([]string, len(keys))
	admitted := true
	for i, key := range keys {
		names[i] = fmt.Sprint(key, " ", seen[key])
		seen[key]++
		denied = append(denied, quantity[i] > 0 && c[names[i]]+quantity[i] > limit[i] ||
			quantity[i] == 0 && c[names[i]] > limit[i])
		admitted = admitted && !denied[i]
	}
	for i, name := range names {
		if admitted {
			c[name] = max(0, c[name]+quantity[i])
		}
		left = append(left, max(0, limit[i]-c[name]))
	}
	return denied, left
}

// Random calls at constant rates: what is decided is what a model decides, and where a
// call is denied all its keys are the same, to the byte, before and after.
func TestMThrottle_allOrNothing(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(5, 6))
	script := `
		local function state()
			local all = {}
			for i, key in ipairs(KEYS) do
				all[i] = (redis.call('DUMP', key) or '') .. ' ' .. redis.call('PEXPIRETIME', key)
				local fields = redis.call('HGETALL', key)
				all[i] = all[i] .. table.concat(fields, ' ')
			end
			return table.concat(all, '|')
		end
		local before = state()
		local reply = redis.call(unpack(ARGV))
		return {reply, before == state() and 1 or 0}`
	sha := s.ScriptLoad(ctx, script).Val()
	keys := []string{"a", "b", "c"}
	// Rates by key and cell: nothing drains, or so fast that all is in motion.
	frozen := [][2]int64{{1, 3_000_000}, {7, 21_000_001}, {3, 10_000_000}}
	moving := [][2]int64{{100, 1}, {700, 3}, {1_000_003, 2000}}
	for name, rates := range map[string][][2]int64{"frozen": frozen, "moving": moving} {
		require.NoError(t, s.FlushAll(ctx).Err())
		model, denials, admissions := cells{}, 0, 0
		for range 12_000 {
			n := 1 + random.IntN(4)
			var on, of []string
			var limit, quantity []int64
			seen := map[string]int{}
			for range n {
				key := keys[random.IntN(len(keys))]
				rate := rates[(int(key[0])+seen[key])%3]
				seen[key]++
				on = append(on, key)
				limit = append(limit, []int64{5, 10, 20}[random.IntN(3)])
				quantity = append(quantity, []int64{0, 1, 1, 1, 2, 3, 3, 7, 21, -2, -30}[random.IntN(11)])
				of = append(of, fmt.Sprint(limit[len(limit)-1]-1, rate[0], rate[1], quantity[len(limit)-1]))
			}
			call := limits(on, of)
			reply, err := s.EvalSha(ctx, sha, keys, call...).Slice()
			require.NoError(t, err)
			got := reply[0].([]any)
			if got[0] == int64(1) {
				denials++
				require.Equal(t, int64(1), reply[1], "%v changed something: %v", call, got)
			} else {
				admissions++
			}
			consistent(t, call, got, quantity)
			if name == "frozen" {
				denied, left := model.take(on, limit, quantity)
				for i := range on {
					inner := got[3+i].([]any)
					require.Equal(t, denied[i], inner[0] == int64(1), "%v: %v, %d", call, got, i)
					require.Equal(t, left[i], inner[2], "%v: %v, %d", call, got, i)
				}
			}
		}
		t.Logf("%s: %d admitted, %d denied", name, admissions, denials)
		assert.Greater(t, min(admissions, denials), 2000, name)
	}
}

// consistent checks a reply within itself.
func consistent(t *testing.T, call []any, got []any, quantity []int64) {
	t.Helper()
	longest, limited := int64(-1), false
	never := false
	for i, q := range quantity {
		inner := got[3+i].([]any)
		if inner[0] == int64(1) {
			limited = true
			longest = max(longest, inner[3].(int64))
			never = never || inner[3] == int64(-1)
			require.Equal(t, q > inner[1].(int64), inner[3] == int64(-1), "%v: %v", call, got)
		} else {
			require.Equal(t, int64(-1), inner[3], "%v: %v", call, got)
		}
	}
	if never {
		longest = -1
	}
	require.Equal(t, limited, got[0] == int64(1), "%v: %v", call, got)
	require.Equal(t, longest, got[1], "%v: %v", call, got)
	if index := got[2].(int64); limited {
		require.Equal(t, longest, got[3+index].([]any)[3], "%v: %v", call, got)
		require.Equal(t, int64(1), got[3+index].([]any)[0], "%v: %v", call, got)
	} else {
		require.Equal(t, int64(-1), index)
	}
}

func TestMThrottle_manyClients(t *testing.T) {
	s := start(t, options{})
	var admitted [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			conn := s.Conn()
			defer conn.Close()
			for admitted[0].Load()+admitted[1].Load() <= 1000 {
				// Half of them take from both, half from the second alone.
				keys, of := []string{"a", "both"}, []string{"299 1 " + frozen + " 1", "499 1 " + frozen + " 1"}
				reply, err := conn.Do(ctx, limits(keys[i%2:], of[i%2:])...).Slice()
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
	assert.Equal(t, int64(300)-admitted[0].Load(), s.throttle("a", 299, 1, frozen, 0)[2])
}
