package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// Random calls: a foreign member among ours is never removed, whatever its score: not when a call removes
// lapsed entries, and not when a refund gives everything back. A call that would remove the
// member is an error.
func TestForeign_oneMemberAmongOurs(t *testing.T) {
	s := start(t, options{})
	random := rand.New(rand.NewPCG(9, 10))
	now := s.now() / 1000
	member := func(m string) redis.Z { // with a score before, among or after our entries
		return redis.Z{Score: -float64([]int64{0, 5, now - 1e9, now + 50_000, now + 1e9, 4e15}[random.IntN(6)]), Member: m}
	}
	refused := map[string]int{}
	for round := range 300 {
		s.Del(ctx, "w", "l")
		for i := range 1 + random.IntN(4) {
			s.must(fmt.Sprintf("GO.WINDOW w 100 %d 3 EXACT", 1+random.IntN(1000)))
			s.must(fmt.Sprintf("GO.LEASE l 100 %d id%d MS", 1+random.IntN(1_000_000), i))
		}
		inWindow, inLeases := member("Ann"), member("Bob")
		require.NoError(t, s.ZAdd(ctx, "w", inWindow).Err())
		require.NoError(t, s.ZAdd(ctx, "l", inLeases).Err())
		for range 10 {
			for _, call := range []string{
				fmt.Sprintf("GO.WINDOW w 100 %d %d MS", 1+random.IntN(100_000), random.IntN(9)-6),
				fmt.Sprintf("GO.WINDOW w 100 1000 -%d", 1+random.IntN(40)),
				fmt.Sprintf("GO.LEASE l %d 1000 id%d", 1+random.IntN(6), random.IntN(6)),
				fmt.Sprintf("GO.RELEASE l id%d id%d", random.IntN(6), random.IntN(6)),
			} {
				if reply := s.ask(call); !strings.HasPrefix(reply, "[") && reply != "0" && reply != "1" && reply != "2" {
					require.Contains(t, []string{commands.ErrForeignWindow.Text(), commands.ErrForeignLeases.Text()}, reply, call)
					refused[reply]++
				}
			}
			require.Equal(t, inWindow.Score, s.ZScore(ctx, "w", "Ann").Val(), "round %d", round)
			require.Equal(t, inLeases.Score, s.ZScore(ctx, "l", "Bob").Val(), "round %d", round)
		}
		require.EqualValues(t, 2, s.Exists(ctx, "w", "l").Val())
	}
	assert.Greater(t, refused[commands.ErrForeignWindow.Text()], 300, "%v", refused)
	assert.Greater(t, refused[commands.ErrForeignLeases.Text()], 300, "%v", refused)
}
