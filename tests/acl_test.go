package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// as logs a new user in who has these rules.
func (s *server) as(user, rules string) *wire {
	s.t.Helper()
	set := append([]any{"ACL", "SETUSER", user, "on", "nopass"}, fields(rules)...)
	require.NoError(s.t, s.Do(ctx, append(set, "+auth")...).Err(), rules)
	w := s.wire()
	require.Equal(s.t, status("OK"), w.do("AUTH", user, "x"))
	return w
}

// mayOrNot checks that a call was let through, or refused for want of a permission.
func mayOrNot(t *testing.T, may bool, reply any, what string) {
	t.Helper()
	refusal, isError := reply.(wireError)
	if may {
		assert.False(t, isError, "%s: %v", what, reply)
	} else if assert.True(t, isError, "%s: %v", what, reply) {
		assert.Regexp(t, "^NOPERM ", string(refusal), what)
	}
}

// Users are granted a command by name, and by category where the server has the API.
func TestACL_categories(t *testing.T) {
	s := start(t, options{})
	categories := wordsOf(s.wire().do("ACL", "CAT"))
	api := s.hasACLAPI()
	user := 0
	for name, c := range samples {
		fast := strings.Contains(c.flags, "fast")
		for _, row := range []struct {
			rules string
			may   bool
		}{
			{"~* -@all +" + strings.ToLower(name), true},
			{"~* -@all +" + name, true},
			{"~* +@all -" + name, false},
			{"~* -@all +get +set", false},
			{"~* -@all +@write", api && c.writes()},
			{"~* -@all +@read", api && !c.writes()},
			{"~* -@all +@fast", api && fast},
			{"~* -@all +@slow", api && !fast},
			{"~user:* -@all +" + name, true},
			{"~other:* -@all +" + name, false},
			{"%R~* -@all +" + name, !c.writes()},
			{"%W~* -@all +" + name, false},
			{"%RW~* -@all +" + name, true},
			{"~* -@all +@throttle", true},
		} {
			if strings.Contains(row.rules, "@throttle") && !slices.Contains(categories, "throttle") {
				assert.False(t, s.since(7, 4), "since 7.4 modules can add a category")
				continue
			}
			user++
			w := s.as(fmt.Sprintf("user%d", user), row.rules)
			mayOrNot(t, row.may, w.do(c.on("user:1")...), name+", "+row.rules)
			w.conn.Close()
			s.Del(ctx, "user:1")
		}
	}
}

// A user with ~a* reaches no other key through several limits, wherever it stands.
func TestACL_keysOfSeveralLimits(t *testing.T) {
	s := start(t, options{})
	user := s.as("a", "~a* -@all +go.mthrottle")
	reader := s.as("r", "~a* %R~* -@all +go.mthrottle")
	call := func(w *wire, keys ...string) any {
		words := []any{"GO.MTHROTTLE", len(keys)}
		for _, key := range keys {
			words = append(words, key)
		}
		for range keys {
			words = append(words, 15, 30, 60, 1)
		}
		return w.do(words...)
	}
	for _, keys := range []string{"a", "a1 a2", "a a", "a a1 a a1", "ab ab ab a"} {
		mayOrNot(t, true, call(user, strings.Fields(keys)...), keys)
	}
	for _, keys := range []string{
		"b", "b a", "a b", "a a b", "a b a", "b a a", "b b", "a b b", "b b a", "a a1 a2 a3 a4 a5 a6 b", "A", "ba a",
	} {
		mayOrNot(t, false, call(user, strings.Fields(keys)...), keys)
		mayOrNot(t, false, call(reader, strings.Fields(keys)...), keys+", may be read")
	}
	// Among 128, in each position.
	for i := range 128 {
		keys := slices.Repeat([]string{"a"}, 128)
		mayOrNot(t, true, call(user, keys...), "128")
		keys[i] = "b"
		mayOrNot(t, false, call(user, keys...), fmt.Sprintf("position %d", i))
	}
	for key := range s.dataset() {
		assert.Regexp(t, "^0 a", key)
	}

	// No number of keys is read differently by the server, who checks them, and by us.
	for _, numkeys := range []string{"+2", "02", " 2", "2 ", "-1", "0", "0x2", "2.0", "", "2\x00", "-0", "00", "3", "5", "9",
		"129", "4294967298", "18446744073709551618", "9223372036854775807", "-9223372036854775808", "two"} {
		reply := user.do("GO.MTHROTTLE", numkeys, "b", "b", 1, 1, 60, 1, 1, 1, 60, 1)
		assert.IsType(t, wireError(""), reply, "%q: %v", numkeys, reply)
		reply = user.do("GO.MTHROTTLE", numkeys, "a", "b", 1, 1, 60, 1, 1, 1, 60, 1)
		assert.IsType(t, wireError(""), reply, "%q: %v", numkeys, reply)
		assert.Zero(t, s.Exists(ctx, "b").Val(), "%q", numkeys)
	}
	// With 1 the second is no key, but a word where a number should be.
	assert.Equal(t, wireError("ERR max_burst is not an integer"), user.do("GO.MTHROTTLE", 1, "a", "b", 1, 60, 1))
}

// A script may touch no more than its user may.
func TestACL_inScripts(t *testing.T) {
	s := start(t, options{})
	user := s.as("a", "~a* -@all +eval +go.mthrottle +go.window")
	for _, c := range []struct {
		call string
		may  bool
	}{
		{"GO.MTHROTTLE 2 a1 a2 1 1 60 1 1 1 60 1", true},
		{"GO.MTHROTTLE 2 a1 b 1 1 60 1 1 1 60 1", false},
		{"GO.MTHROTTLE 2 b a1 1 1 60 1 1 1 60 1", false},
		{"GO.WINDOW a3 1 60", true},
		{"GO.WINDOW b 1 60", false},
		{"GO.QUOTA a4 1 60", false},
	} {
		reply := user.do(append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, fields(c.call)...)...)
		_, isError := reply.(wireError)
		assert.Equal(t, !c.may, isError, "%s: %v", c.call, reply)
	}
	assert.Zero(t, s.Exists(ctx, "b", "a4").Val())
}
