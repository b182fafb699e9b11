package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// No transcript has users. ACL rules grant a command by name, and by category where the server has the API.
func TestACL_categories(t *testing.T) {
	s := start(t, options{})
	categories := wordsOf(s.session().do("ACL", "CAT"))
	api := s.hasACLAPI()
	user := 0
	for name, c := range samples {
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
			{"~* -@all +@fast", api && c.fast()},
			{"~* -@all +@slow", api && !c.fast()},
			{"~*user:* -@all +" + name, true},
			{"~*other:* -@all +" + name, false},
			{"%R~* -@all +" + name, !c.writes()},
			{"%W~* -@all +" + name, false},
			{"%RW~* -@all +" + name, true},
			{"~* -@all +@throttle", true},
		} {
			if strings.Contains(row.rules, "@throttle") && !slices.Contains(categories, "throttle") {
				assert.False(t, s.since(7, 4), "a server since 7.4 lets modules add a category")
				continue
			}
			user++
			w := s.as(fmt.Sprintf("user%d", user), row.rules)
			mayOrNot(t, row.may, w.do(c.on("user:1")...), name+", "+row.rules)
			w.Close()
			s.Del(ctx, c.key("user:1"))
		}
	}
}

// A user with ~a* reaches no other key through GO.ALL, whatever the position of the key.
func TestACL_keysOfSeveralLimits(t *testing.T) {
	t.Run("one thread", func(t *testing.T) { testKeysOfSeveralLimits(t, start(t, options{})) })
	t.Run("I/O threads", func(t *testing.T) { testKeysOfSeveralLimits(t, start(t, options{args: ioThreads})) })
}

func testKeysOfSeveralLimits(t *testing.T, s *server) {
	t.Helper()
	user := s.as("a", "~a* -@all +go.all +go.all_ro")
	reader := s.as("r", "~a* %R~* -@all +go.all +go.all_ro")
	for _, row := range []struct {
		groups   string // the words after GO.ALL
		may      bool
		readable bool // by the reader, with GO.ALL_RO
	}{
		{"a1 QUOTA 9 60", true, true},
		{"a1 QUOTA 9 60 KEY a2 WINDOW 9 60", true, true},
		{"a3 THROTTLE 9 1 60 THROTTLE 9 1 60 KEY a4 LEASE 9 60 b KEY a5 QUOTA 9 60 1 ALIGN 0 MS", true, true},
		{"b QUOTA 9 60", false, true},
		{"b QUOTA 9 60 KEY a1 QUOTA 9 60", false, true},
		{"a1 QUOTA 9 60 KEY b QUOTA 9 60", false, true},
		{"a1 QUOTA 9 60 KEY b WINDOW 9 60 KEY a6 QUOTA 9 60", false, true},
		{"a1 QUOTA 9 60 KEY a2 WINDOW 9 60 1 EXACT KEY b WINDOW 9 60 EXACT", false, true},
		{"a3 THROTTLE 9 1 60 1 THROTTLE 9 1 60 1 KEY b THROTTLE 9 1 60 1 MS", false, true},
		{"A QUOTA 9 60 KEY a QUOTA 9 60", false, true},
		{"a QUOTA 9 60 KEY ba QUOTA 9 60", false, true},
		// Keys and ids that are named like words of the grammar.
		{"a4 LEASE 9 60 KEY", true, true},
		{"a4 LEASE 9 60 KEY KEY a1 QUOTA 9 60", true, true},
		{"a4 LEASE 9 60 KEY KEY b QUOTA 9 60", false, true},
		{"a4 LEASE 9 60 MS KEY KEY LEASE 9 60 a", false, true},
		{"a4 LEASE 9 60 MS KEY MS QUOTA 9 60", false, true},
		{"a4 LEASE 9 60 THROTTLE KEY THROTTLE THROTTLE 9 1 60", false, true},
		{"KEY LEASE 9 60 KEY", false, true},
		{"MS QUOTA 9 60 MS", false, true},
		{"THROTTLE THROTTLE 9 1 60 KEY a1 QUOTA 9 60", false, true},
	} {
		mayOrNot(t, row.may, user.do(fields("GO.ALL "+row.groups)...), row.groups)
		mayOrNot(t, row.may, user.do(fields("GO.ALL_RO "+row.groups)...), row.groups+", read only")
		mayOrNot(t, row.may, reader.do(fields("GO.ALL "+row.groups)...), row.groups+", reader")
		mayOrNot(t, row.readable, reader.do(fields("GO.ALL_RO "+row.groups)...), row.groups+", reader, read only")
	}
	// Each position of 32.
	for i := range 32 {
		all := make([]string, 32)
		for j := range all {
			all[j] = fmt.Sprintf("a.%d QUOTA 99 60", j)
		}
		mayOrNot(t, true, user.do(allOf(all...)...), "32 keys")
		all[i] = "b QUOTA 99 60"
		mayOrNot(t, false, user.do(allOf(all...)...), fmt.Sprintf("position %d", i))
	}
	for key := range s.dataset() {
		assert.Regexp(t, "^0 a", key)
	}

	// A call that is wrong names no key, and it touches none.
	for _, groups := range []string{
		"b", "b QUOTA", "b QUOTA 9", "b KEY a1 QUOTA 9 60", "a1 QUOTA 9 60 KEY b", "a1 QUOTA 9 60 KEY", "a1 QUOTA 9 60 b QUOTA 9 60",
		"a1 b QUOTA 9 60", "1 b QUOTA 9 60", "a1 QUOTA 9 60 1 1 KEY b QUOTA 9 60", "a1 QUOTA 9 60 MS KEY b QUOTA 9 60",
		"a1 LEASE 9 60 KEY b QUOTA 9 60", "b QUOTA 9 60 KEY b QUOTA 9 60", "b QUOTA 9 60 QUOTA 9 60", "b QUOTA 9 60 ALIGN",
		"b QUOTA 9 60 SURPRISE", "b QUOTA x 60", "b QUOTA 9 60 x",
		"b QUOTA 9 60 " + strings.Repeat("KEY b QUOTA 9 60 ", 32), "b" + strings.Repeat(" THROTTLE 9 1 60", 33),
	} {
		for _, name := range []string{"GO.ALL ", "GO.ALL_RO "} {
			reply := user.do(fields(name + groups)...)
			assert.Implements(t, (*error)(nil), reply, groups)
		}
		assert.Zero(t, s.Exists(ctx, "b").Val(), groups)
	}
}

// A script reaches only the keys and commands that its user may use.
func TestACL_inScripts(t *testing.T) {
	s := start(t, options{})
	user := s.as("a", "~a* -@all +eval +go.all +go.window")
	for _, c := range []struct {
		call string
		may  bool
	}{
		{"GO.ALL a1 THROTTLE 1 1 60 1 KEY a2 THROTTLE 1 1 60 1", true},
		{"GO.ALL a1 THROTTLE 1 1 60 1 KEY b THROTTLE 1 1 60 1", false},
		{"GO.ALL b THROTTLE 1 1 60 1 KEY a1 THROTTLE 1 1 60 1", false},
		{"GO.ALL a1 LEASE 1 60 KEY KEY b QUOTA 1 60", false},
		{"GO.WINDOW a3 1 60", true},
		{"GO.WINDOW b 1 60", false},
		{"GO.QUOTA a4 1 60", false},
	} {
		reply := user.do(append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, fields(c.call)...)...)
		_, isError := reply.(error)
		assert.Equal(t, !c.may, isError, "%s: %v", c.call, reply)
	}
	assert.Zero(t, s.Exists(ctx, "b", "a4").Val())
}
