package tests

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The script of docs/swap.md leaves no limiter that redis-cell would end its server for, whatever hash it is in: each becomes
// redis-cell's string, with the latest time of all its cells and lockouts and the same expiry. Other keys stay as they are, and
// the reply names the hashes. No transcript says so, because the script is the page's.
func TestSwap_wayBackScript(t *testing.T) {
	page, err := os.ReadFile("../docs/swap.md")
	require.NoError(t, err)
	script := regexp.MustCompile(`(?s)cat >back.lua <<'END'\n(.*?)\n    END`).FindSubmatch(page)
	require.NotNil(t, script)
	s := start(t, options{})
	for n := 1; n <= 32; n++ {
		s.ask(fmt.Sprintf("GO.ALL cells:%d%s", n, strings.Repeat(" THROTTLE 4 7 "+strconv.Itoa(n)+"h", n)))
		s.ask(fmt.Sprintf("GO.ALL locks:%d%s THROTTLE 0 1 1m LOCKOUT %dh", n, strings.Repeat(" THROTTLE 0 1 1h", n-1), n))
		s.ask(fmt.Sprintf("GO.ALL locks:%d%s THROTTLE 0 1 1m LOCKOUT %dh", n, strings.Repeat(" THROTTLE 0 1 1h 0", n-1), n))
	}
	for _, line := range []string{"whole 15 30 60", "fraction 15 7 60", "reserved 0 1 60 1 RESERVE 1h", "reserved 0 1 60 1 RESERVE 1h", "debt 1 1 60 50 FORCE",
		"locked 0 1 60 1 LOCKOUT 1h", "locked 0 1 60 1 LOCKOUT 1h", "ended 0 7 60 1 LOCKOUT 1ms", "ended 0 7 60 1 LOCKOUT 1ms"} {
		s.ask("GO.THROTTLE " + line)
	}
	want, foreign := map[string]string{}, map[string]bool{"name": true, "pair": true, "gap": true, "text": true, "long": true}
	for _, key := range s.Keys(ctx, "*").Val() {
		for field, value := range s.HGetAll(ctx, key).Val() {
			if n, _ := strconv.Atoi(field); n >= 128 || n%4 == 0 {
				want[key] = max(want[key], value)
			}
		}
	}
	require.Len(t, want, 2*32+6)
	for _, line := range []string{"HSET name name bob", "HSET pair 0 5 1 6", "HSET gap 1 60 4 1900000000000000000", "HSET text 0 1900000000000000000 1 x",
		"GO.WINDOW window 5 1h", "GO.QUOTA quota 5 1h", "GO.LEASE lease 5 1h a"} {
		s.ask(line)
	}
	for i := range 200 {
		s.HSet(ctx, "long", strconv.Itoa(i), "1900000000000000000")
	}
	expires := map[string]int64{}
	for key := range want {
		expires[key] = s.Do(ctx, "PEXPIRETIME", key).Val().(int64)
	}
	before := s.dataset()
	reply, err := s.Eval(ctx, string(script[1]), nil).Slice()
	require.NoError(t, err)
	require.EqualValues(t, len(want), reply[0])
	for _, key := range reply[1].([]any) {
		require.True(t, foreign[key.(string)], key)
	}
	require.Len(t, reply[1], len(foreign))
	for key, tat := range want {
		assert.Equal(t, tat, s.Get(ctx, key).Val(), key)
		assert.Equal(t, expires[key], s.Do(ctx, "PEXPIRETIME", key).Val(), key)
	}
	for key, value := range s.dataset() {
		if _, ours := want[key]; !ours {
			assert.Equal(t, before[key], value, key)
		}
	}
}
