package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// as creates a user with these rules and returns a connection of that user.
func (s *server) as(user, rules string) *wire {
	s.t.Helper()
	set := append([]any{"ACL", "SETUSER", user, "on", "nopass"}, fields(rules)...)
	require.NoError(s.t, s.Do(ctx, append(set, "+auth")...).Err(), rules)
	w := s.wire()
	require.Equal(s.t, status("OK"), w.do("AUTH", user, "x"))
	return w
}

// mayOrNot checks that a call was permitted, or that the reply is NOPERM.
func mayOrNot(t *testing.T, may bool, reply any, what string) {
	t.Helper()
	refusal, isError := reply.(wireError)
	if may {
		assert.False(t, isError, "%s: %v", what, reply)
	} else if assert.True(t, isError, "%s: %v", what, reply) {
		assert.Regexp(t, "^NOPERM ", string(refusal), what)
	}
}

// hasACLAPI says whether the server lets modules put commands into categories. Servers do
// since 7.2.
func (s *server) hasACLAPI() bool { return s.since(7, 2) }
