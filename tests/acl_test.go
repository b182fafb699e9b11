package tests

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No transcript has users. A user reaches the permitted keys through GO.ALL and no other, whatever the position of the key,
// directly, in scripts and in transactions. With I/O threads the server sees the first key only, and the module refuses the
// others as the server does. A selector permits its own commands on its own keys. The refusal is in the server's log of
// refusals.
func TestACL_keysOfSeveralLimits(t *testing.T) {
	for _, args := range [][]string{nil, ioThreads} {
		s := start(t, options{Args: args})
		admin := s.session()
		user := s.as("al", "~a* %R~r* -@all +go.all +go.all_ro +eval +multi +exec +discard (+get +set ~b*) (+go.all_ro ~c*) (+go.quota ~d*)")
		for _, row := range []struct {
			groups    string // the words after GO.ALL
			write, ro string // the key that is refused
		}{
			{"a1 QUOTA 99 60 KEY a2 WINDOW 99 60", "", ""},
			{"b1 QUOTA 99 60", "b1", "b1"},
			{"a1 QUOTA 99 60 KEY b2 WINDOW 99 60 KEY a6 QUOTA 99 60", "b2", "b2"},
			{"a3 THROTTLE 99 1 60 1 THROTTLE 99 1 60 1 KEY b4 THROTTLE 99 1 60 1 MS", "b4", "b4"},
			{"a1 QUOTA 99 60 KEY r1 WINDOW 99 60", "r1", ""}, // the user may only read it
			{"r1 QUOTA 99 60 KEY r2 WINDOW 99 60 KEY b4 WINDOW 99 60", "r1", "b4"},
			{"c1 QUOTA 99 60", "c1", ""}, // of a selector
			{"a1 QUOTA 99 60 KEY d1 QUOTA 99 60", "d1", "d1"},
			{"a4 LEASE 99 60 MS KEY KEY LEASE 99 60 a", "KEY", "KEY"}, // ids and a key that are named like words of the grammar
		} {
			for how := range 3 {
				admin.refuses(t, user, row.write, how, "GO.ALL "+row.groups)
				admin.refuses(t, user, row.ro, how, "GO.ALL_RO "+row.groups)
			}
		}
		for _, groups := range []string{"b", "b QUOTA 9", "a1 QUOTA 9 60 KEY b", "a1 QUOTA 9 60 1 1 KEY b QUOTA 9 60", "b QUOTA x 60"} {
			assert.Implements(t, (*error)(nil), user.do(fields("GO.ALL "+groups)...), "a call that is wrong: %s", groups)
		}
		for key := range s.dataset() {
			assert.Regexp(t, "^a", key)
		}
	}
}

// refuses makes a call of a user directly, in a script or in a transaction, and reads ACL LOG by its own connection. The
// server must refuse this key, or admit the call if the key is "".
func (c session) refuses(t *testing.T, user session, key string, how int, call string) {
	t.Helper()
	require.Equal(t, "OK", c.do("ACL", "LOG", "RESET"))
	words := fields(call)
	var reply any
	switch how {
	case 0:
		reply = user.do(words...)
	case 1:
		reply = user.do(append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, words...)...)
	case 2:
		require.Equal(t, "OK", user.do("MULTI"))
		if reply = user.do(words...); reply != "QUEUED" {
			user.do("DISCARD")
			break
		}
		reply = user.do("EXEC")
		if all, ok := reply.([]any); ok {
			reply = all[0]
		}
	}
	what, log := fmt.Sprintf("%s, way %d", call, how), c.list("ACL", "LOG")
	if key == "" {
		assert.IsType(t, []any{}, reply, what)
		assert.Empty(t, log, what)
		return
	}
	assert.Regexp(t, "^NOPERM|can.t access at least one of the keys|^ERR ACL failure in script", fmt.Sprint(reply), what)
	if assert.Len(t, log, 1, what) {
		entry := log[0].(map[any]any)
		assert.Equal(t, []any{"key", key, "al"}, []any{entry["reason"], entry["object"], entry["username"]}, what)
	}
}

// Valkey since 9.1 can permit some databases only. In a permitted one all keys of a call are.
func TestACL_databases(t *testing.T) {
	s := start(t, options{Args: ioThreads})
	if s.Do(ctx, "ACL", "SETUSER", "al", "db=1").Err() != nil {
		return // a server without such rules
	}
	user := s.as("al", "~a* -@all +go.all +select resetdbs db=1")
	require.Equal(t, "OK", user.do("SELECT", 1))
	mayOrNot(t, true, user.do(fields("GO.ALL a1 QUOTA 9 60 KEY a2 QUOTA 9 60")...), "db=1")
	mayOrNot(t, false, user.do(fields("GO.ALL a1 QUOTA 9 60 KEY b QUOTA 9 60")...), "another key")
}
