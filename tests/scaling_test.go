package tests

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// admitted returns how many of some calls are admitted, and the sum of their sixth integers.
func (s *server) admitted(n int, call func(i int) string) (count, sum int) {
	s.t.Helper()
	for i := range n {
		reply := strings.Trim(s.must(call(i)), "[]")
		var limited, limit, remaining, retryAfter, resetAfter, sixth int
		_, err := fmt.Sscan(reply+" 0", &limited, &limit, &remaining, &retryAfter, &resetAfter, &sixth)
		require.NoError(s.t, err, reply)
		count, sum = count+1-limited, sum+sixth
	}
	return count, sum
}

// The remedies of docs/scaling.md for one hot key admit together what the one key admits. The period is a day, so that
// nothing drains meanwhile.
func TestScaling_remedies(t *testing.T) {
	page, err := os.ReadFile("../docs/scaling.md")
	require.NoError(t, err)
	for _, call := range []string{"GO.THROTTLE hot:batch 99 100 1 10 UPTO", "GO.THROTTLE hot:1 24 25 1", "GO.LEASE hot:shares 10 10 web-1"} {
		require.Contains(t, string(page), "> "+call+"\n")
	}
	s := start(t, options{})
	one, _ := s.admitted(300, func(int) string { return "GO.THROTTLE hot:one 99 100 86400" })
	split, _ := s.admitted(300, func(i int) string { return fmt.Sprintf("GO.THROTTLE hot:%d 24 25 86400", i%4) })
	s.must("GO.THROTTLE hot:batch 99 100 86400 5") // so that the last batch finds less than 10
	_, batches := s.admitted(30, func(int) string { return "GO.THROTTLE hot:batch 99 100 86400 10 UPTO" })
	leases, _ := s.admitted(30, func(i int) string { return fmt.Sprintf("GO.LEASE hot:shares 10 10 web-%d", i) })
	assert.Equal(t, []int{100, 100, 95, 10}, []int{one, split, batches, leases})
	// A split denies what one key admits, if the calls meet one part only.
	part, _ := s.admitted(100, func(int) string { return "GO.THROTTLE hot:part 24 25 86400" })
	assert.Equal(t, 25, part)
	// Units of a batch can be given back.
	assert.Regexp(t, `^\[0 100 7 -1 `, s.must("GO.THROTTLE hot:batch 99 100 86400 -7"))
}

// Twelve keys of a split have slots on each of three shards.
func TestScaling_splitReachesEveryShard(t *testing.T) {
	if env.image != "" {
		t.Skip("the slots do not depend on the image; the run with local servers has this test")
	}
	s := start(t, options{cluster: true})
	shards := map[int64]int{}
	for i := range 12 {
		slot, err := s.ClusterKeySlot(ctx, fmt.Sprintf("hot:%d", i)).Result()
		require.NoError(t, err)
		shards[slot*3/slots]++
	}
	assert.Len(t, shards, 3, "%v", shards)
}
