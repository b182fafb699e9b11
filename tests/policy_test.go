package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowPolicies are of every kind. Nothing of them drains while a test runs.
const slowPolicies = "login THROTTLE 4 1 35d LOCKOUT 30d; api THROTTLE 9 1 35d, THROTTLE 99 1 30d; " +
	"win WINDOW 5 35d; export QUOTA 5 35d ALIGN 1h; beta SHADOW THROTTLE 4 1 35d LOCKOUT 30d"

// slowNames are the names of slowPolicies.
var slowNames = []string{"login", "api", "win", "export", "beta"}

// left returns what remains at a key, told by the first inner array.
func (s *server) left(key string) int64 {
	s.t.Helper()
	reply, err := s.Do(ctx, "GO.POLICY_RO", key, 0).Slice()
	require.NoError(s.t, err, key)
	return reply[6].([]any)[2].(int64)
}

// No transcript has users. Whatever words a user with nothing but +go.policy and a key pattern gives GO.POLICY, usage never shrinks, no key of another pattern changes,
// and no limit but that of the policy decides.
func TestPolicy_aclEveryWord(t *testing.T) {
	s := start(t, options{})
	s.setPolicies(slowPolicies)
	for _, name := range slowNames {
		user := s.as("app-"+name, "~"+name+":* +go.policy")
		key := name + ":bob"
		require.NoError(t, s.Do(ctx, "GO.POLICY", key, 2).Err())
		outside := s.dataset()
		delete(outside, "0 "+key)
		last := s.left(key)
		for _, words := range []string{
			"-1", "-2", "-0", "-1000000000001", "-9223372036854775808", "-99999999999999999999", "0", "+1", "0 MS", "1 FORCE", "1 UPTO",
			"UPTO", "FORCE", "-1 FORCE", "-1 MS", "MS -1", "LOCKOUT 1", "1 LOCKOUT 1", "RESERVE 0", "EXACT", "ALIGN 0", "SHADOW", "99 1 1", "1 1",
			"THROTTLE 99 1 1", "KEY api:eve", "1 KEY export:eve", "1000000000001", "1000000000002", "9223372036854775807", "x", "1.5", "1e3", "2",
		} {
			reply := user.do(append([]any{"GO.POLICY", key}, fields(words)...)...)
			now := s.left(key)
			assert.LessOrEqual(t, now, last, "%s %s: %v", key, words, reply)
			if number, found := strings.CutPrefix(words, "-"); found && number != "0" {
				assert.Implements(t, (*error)(nil), reply, "%s %s", key, words)
				assert.Equal(t, last, now, "%s %s", key, words)
			}
			last = now
		}
		for _, other := range slowNames {
			if other != name {
				mayOrNot(t, false, user.do("GO.POLICY", other+":bob"), other)
			}
		}
		mayOrNot(t, false, user.do("GO.POLICY", name), "a key outside the pattern")
		// The user uses the limit up, and gets no unit more.
		granted := int64(0)
		for range 30 {
			if reply, ok := user.do("GO.POLICY", key).([]any); ok && reply[6].([]any)[0] == int64(0) {
				granted++
			}
		}
		assert.LessOrEqual(t, granted, last, key)
		after := s.dataset()
		delete(after, "0 "+key)
		same(t, outside, after, "keys of others")
	}
}
