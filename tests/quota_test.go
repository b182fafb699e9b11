package tests

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuota_replies(t *testing.T) {
	s := startStill(t)
	for i, c := range []struct{ call, want string }{
		{"10 3600 0", "[0 10 10 -1 0]"},
		{"10 3600 11", "[1 10 10 -1 0]"},
		{"10 3600 4", "[0 10 6 -1 3600]"},
		{"10 3600 7", "[1 10 6 3600 3600]"},
		{"10 3600 7 UPTO", "[0 10 0 3600 3600 6]"},
		{"10 3600 UPTO", "[1 10 0 3600 3600 0]"},
		{"10 3600 99 UPTO", "[1 10 0 3600 3600 0]"},
		{"10 3600 0 UPTO", "[0 10 0 -1 3600 0]"},
		// A changed limit takes effect at once. A changed period or offset takes effect with the
		// next window.
		{"5 3600 0", "[1 5 0 3600 3600]"},
		{"15 60 5", "[0 15 0 -1 3600]"},
		{"15 60 1 ALIGN 0", "[1 15 0 3600 3600]"},
		{"15 3600 -3 UPTO", "[0 15 3 -1 3600 -3]"},
		{"15 3600 -99 UPTO", "[0 15 15 -1 0 -12]"},
		{"15 3600 -99 UPTO", "[0 15 15 -1 0 0]"},
		{"15 60 1", "[0 15 14 -1 60]"},
	} {
		assert.Equal(t, c.want, s.ask("GO.QUOTA k "+c.call), "step %d: %s", i, c.call)
	}
}

// No call leaves a key without an expiry. The next admitted call mends what PERSIST or EXPIRE
// by hand did.
func TestQuota_neverWithoutAnExpiry(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(7, 8))
	script := `local r = redis.call(unpack(ARGV))
		return {r, redis.call('PEXPIRETIME', KEYS[1]), redis.call('GET', KEYS[1]) or ''}`
	touched, mended := false, 0
	for i := range 4000 {
		period := []int64{3_600_000, 3_600_000, 5, 1}[random.IntN(4)]
		words := []any{"GO.QUOTA", "k", []int{1, 10, 1000}[random.IntN(3)], period,
			[]int64{1, 1, 1, 9, 0, -1, -2, 2000}[random.IntN(8)], "MS"}
		if random.IntN(3) == 0 {
			words = append(words, "ALIGN", random.IntN(10)-5)
		}
		if random.IntN(4) == 0 {
			words = append(words, "UPTO")
		}
		switch random.IntN(20) {
		case 0:
			touched = s.Persist(ctx, "k").Val() || touched
		case 1:
			touched = s.Do(ctx, "PEXPIRE", "k", 100_000_000+random.IntN(1e9)).Val() == int64(1) || touched
		case 2:
			s.Del(ctx, "k")
		}
		reply, err := s.Eval(ctx, script, []string{"k"}, words...).Slice()
		require.NoError(t, err)
		five, at, value := reply[0].([]any), reply[1].(int64), reply[2].(string)
		writes := five[0] == int64(0) && words[4] != int64(0) && five[4] != int64(0) // not a refund of nothing
		switch {
		case value == "": // the key expired, or everything was given back
			touched = false
		case touched && !writes:
			continue
		default:
			if touched {
				mended++
			}
			touched = false
			_, end, _ := strings.Cut(value, "@")
			ns, err := strconv.ParseInt(end, 10, 64)
			require.NoError(t, err)
			us := ns / 1000
			require.GreaterOrEqual(t, at, (us+999)/1000, "call %d, %v: %v, %s", i, words, five, value)
			require.LessOrEqual(t, at, us/1000+1+3_600_000/4, "call %d, %v: %v, %s", i, words, five, value)
		}
	}
	assert.Greater(t, mended, 20)
}

// Aligned windows end at multiples of the period plus the offset.
func TestQuota_alignedWindows(t *testing.T) {
	s := start(t, options{})
	for _, c := range []struct{ period, offset int64 }{{40, 0}, {40, 7}, {40, -7}, {30, 100_003}} { // ms
		key := fmt.Sprint(c)
		ends := map[int64]int64{} // units taken in each window, by its end
		eventually(t, "several windows have passed", func() bool {
			reply := ints(t, s.Do(ctx, "GO.QUOTA", key, 5, c.period, 1, "MS", "ALIGN", c.offset))
			require.True(t, reply[4] > 0 && reply[4] <= c.period, "%v", reply)
			if reply[0] == 0 {
				used, end := s.quota(key)
				require.Zero(t, (end-c.offset*1000)%(c.period*1000), "%s ends at %d", key, end)
				ends[end]++
				require.Equal(t, ends[end], used, "%s: window %d", key, end)
				require.Equal(t, 5-used, reply[2])
			} else {
				require.Equal(t, reply[4], reply[3])
			}
			return len(ends) > 4
		})
	}
	// Windows of a day, in several time zones.
	const day = 86_400
	for offset := range map[int64]bool{0: true, -3600: true, 3600 * 14: true, 10 * day: true} {
		s.Del(ctx, "k")
		before := s.now() / 1_000_000_000
		reply := ints(t, s.Do(ctx, "GO.QUOTA", "k", 5, day, 1, "ALIGN", offset))
		_, end := s.quota("k")
		seconds := end / 1_000_000
		assert.Zero(t, (seconds-offset)%day)
		assert.True(t, seconds > before && seconds <= before+day+1, "offset %d ends at %d, called at %d", offset, seconds, before)
		assert.True(t, reply[4] >= 1 && reply[4] <= day, "%v", reply)
	}
}

// A new window starts at the very microsecond at which the old one ends, so reset_after is
// never 0. The test makes enough calls to meet that microsecond now and then.
func TestQuota_aNewWindowStartsAtTheEndOfTheOld(t *testing.T) {
	s := start(t, options{})
	for _, options := range []string{"1 MS", "1 MS ALIGN 0"} {
		windows, last := 0, int64(-1)
		for range 40 {
			p := s.Pipeline()
			for range 2000 {
				p.Do(ctx, append(fields("GO.QUOTA k 1000000 1"), fields(options)...)...)
			}
			cmds, err := p.Exec(ctx)
			require.NoError(t, err)
			for _, cmd := range cmds {
				reply := ints(t, cmd.(*redis.Cmd))
				require.Equal(t, []int64{0, 1}, []int64{reply[0], reply[4]}, "%v", reply)
				if reply[2] > last {
					windows++
				}
				last = reply[2]
			}
		}
		assert.Greater(t, windows, 20, options)
	}
}
