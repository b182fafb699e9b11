package tests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// fields splits a line into words for a command.
func fields(line string) []any {
	return anyOf(strings.Fields(line))
}

// anyOf returns words for a command.
func anyOf(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

// on returns the words of a call with key in place of KEY. A word of the call may end with KEY.
func on(call, key string) []any {
	words := fields(call)
	for i := range words {
		if before, found := strings.CutSuffix(words[i].(string), "KEY"); found && (before == "" || strings.HasSuffix(before, ":")) {
			words[i] = before + key
		}
	}
	return words
}

// flat returns a reply, or an error, as text.
func flat(v any, err error) string {
	switch {
	case failure(err) != nil:
		return err.Error()
	case v == nil:
		return "(nil)"
	}
	return fmt.Sprint(v)
}

// failure returns the error of a call. The client returns an error for a null reply, too, which is none.
func failure(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// ask sends a line and returns the reply as text.
func (s *server) ask(call string) string {
	return flat(s.Do(ctx, fields(call)...).Result())
}

// must sends a line and returns the reply as text. An error fails the test.
func (s *server) must(call string) string {
	s.t.Helper()
	v, err := s.Do(ctx, fields(call)...).Result()
	require.NoError(s.t, err, call)
	return flat(v, nil)
}

// allOf builds a GO.ALL call from groups, each a key and its clauses.
func allOf(groups ...string) []any { return fields("GO.ALL " + strings.Join(groups, " KEY ")) }

// allReadOnlyCalls returns readOnlyCalls and the samples of the commands that have a read-only
// twin.
func allReadOnlyCalls() []string {
	calls := slices.Clone(readOnlyCalls)
	for name, c := range samples {
		if _, ok := samples[name+"_RO"]; ok {
			calls = append(calls, c.Sample.Call)
		}
	}
	return calls
}

// readOnlyCalls are calls of the commands that have a read-only twin. Their keys are those
// that fill makes.
var readOnlyCalls = []string{
	"GO.THROTTLE h 9 1 360000 1", "GO.THROTTLE h 9 1 360000 0", "GO.THROTTLE h 9 1 360000 -2", "GO.THROTTLE h 9 1 360000 9",
	"GO.THROTTLE h 9 1 360000 11", "GO.THROTTLE h 9 1 360000 11 UPTO", "GO.THROTTLE h 9 1 180000 1", "GO.THROTTLE h 1 7 360000 1",
	"GO.THROTTLE none 9 1 360000", "GO.THROTTLE h 9 1 360000000 1 MS", "GO.THROTTLE h x 1 360000", "GO.THROTTLE w 9 1 360000",
	"GO.THROTTLE cell 9 1 360000 1", "GO.THROTTLE h 9 1 360000 11 FORCE", "GO.THROTTLE h 9 1 360000 0 FORCE", "GO.THROTTLE h 9 1 360000 9 RESERVE 720000",
	"GO.THROTTLE h 9 1 360000 9 RESERVE 719999", "GO.THROTTLE h 9 1 360000 -2 RESERVE 1", "GO.THROTTLE h 9 1 360000 9 LOCKOUT 60", "GO.THROTTLE h 1 7 360000 1 LOCKOUT 9999999",
	"GO.THROTTLE cell 0 1 360000 1 LOCKOUT 60", "GO.THROTTLE locked 9 1 360000 1", "GO.THROTTLE locked 9 1 360000 0", "GO.THROTTLE locked 9 1 360000 1 FORCE",
	"GO.THROTTLE locked 9 1 360000 -99", "GO.THROTTLE locked 9 7 360000 1 LOCKOUT 1", "GO.THROTTLE h 0 1 3153600000 9 FORCE",
	"GO.WINDOW w 9 360000 1", "GO.WINDOW w 9 360000 0", "GO.WINDOW w 9 360000 -2", "GO.WINDOW w 9 360000 9",
	"GO.WINDOW w 9 360000 11", "GO.WINDOW w 9 360000 11 UPTO EXACT", "GO.WINDOW w 2 360000 0", "GO.WINDOW w 1000 360000 1",
	"GO.WINDOW w 9 360000 11 FORCE", "GO.WINDOW w 2 360000 0 FORCE", "GO.WINDOW w 9 360000 1 FORCE EXACT",
	"GO.WINDOW none 9 360000 -1", "GO.WINDOW w 9 360000000 1 MS UPTO", "GO.WINDOW w 9 x", "GO.WINDOW q 9 60",
	"GO.QUOTA q 9 360000 1", "GO.QUOTA q 9 360000 0", "GO.QUOTA q 9 360000 -2", "GO.QUOTA q 9 360000 9",
	"GO.QUOTA q 9 360000 11", "GO.QUOTA q 9 360000 11 UPTO", "GO.QUOTA q 2 360000 0", "GO.QUOTA q 9 60 1 ALIGN 0",
	"GO.QUOTA q 9 360000 11 FORCE", "GO.QUOTA q 2 360000 0 FORCE", "GO.QUOTA none 9 60 11 FORCE ALIGN 0",
	"GO.QUOTA none 9 360000 1", "GO.QUOTA q 9 360000000 1 MS", "GO.QUOTA q 9 360000 ALIGN", "GO.QUOTA h 9 60",
	"GO.LEASE l 9 360000 a", "GO.LEASE l 9 360000 x", "GO.LEASE l 2 720000 a", "GO.LEASE l 2 360000 x", "GO.LEASE l 1 360000 x",
	"GO.LEASE none 9 360000 a", "GO.LEASE l 9 360000000 a MS", "GO.LEASE l 9 x a", "GO.LEASE w 9 360000 a",
	"GO.ALL h THROTTLE 9 1 360000 1 KEY w WINDOW 9 360000 2 KEY q QUOTA 9 360000 3 KEY l LEASE 9 360000 x",
	"GO.ALL h THROTTLE 9 1 360000 1 KEY w WINDOW 9 360000 6 KEY q QUOTA 9 360000 3 KEY l LEASE 2 360000 x",
	"GO.ALL h THROTTLE 9 1 360000 -1 THROTTLE 0 1 60 1 THROTTLE 0 1 60 0 KEY w WINDOW 9 360000 EXACT KEY q QUOTA 9 360000 ALIGN 1",
	"GO.ALL h THROTTLE 9 1 180000 9 KEY none WINDOW 9 360000", "GO.ALL cell THROTTLE 9 1 360000 KEY l LEASE 2 360000 a",
	"GO.ALL h THROTTLE 9 1 360000 11 KEY w WINDOW 9 360000 11 KEY q QUOTA 9 360000 -2 FORCE", "GO.ALL h THROTTLE 9 1 360000 KEY l LEASE 9 60 x FORCE",
	"GO.ALL w WINDOW 9 360000 KEY locked THROTTLE 9 1 360000 0 THROTTLE 9 1 360000", "GO.ALL locked THROTTLE 9 1 360000 11 THROTTLE 9 1 360000 FORCE",
	"GO.ALL h THROTTLE 9 1 360000000 1 MS", "GO.ALL h THROTTLE 9 1 360000 11 KEY w WINDOW 9 x", "GO.ALL h THROTTLE 9 1 60 KEY q WINDOW 9 60",
}

func (s *server) fill() {
	s.t.Helper()
	require.NoError(s.t, s.FlushAll(ctx).Err())
	for _, call := range []string{
		"GO.THROTTLE h 9 1 360000 3", "GO.WINDOW w 9 360000 2", "GO.WINDOW w 9 360000 2", "GO.QUOTA q 9 360000 3",
		"GO.LEASE l 9 360000 a", "GO.LEASE l 9 720000 b", "SET cell 4102444800000000000 EX 1000000",
		"GO.THROTTLE locked 9 1 360000 9", "GO.THROTTLE locked 9 1 360000 2 LOCKOUT 9999999",
	} {
		s.must(call)
	}
}

// twin returns the same call under the name of the read-only command.
func twin(call string) string {
	name, rest, _ := strings.Cut(call, " ")
	return name + "_RO " + rest
}

// frozen is a period in seconds, 35 days. At one unit in that time nothing drains while a
// test runs.
const frozen = "3000000"

// deep turns lines of integers and array headers into the text of nested lists.
func deep(lines []string) string {
	var next func() string
	next = func() string {
		line := lines[0]
		lines = lines[1:]
		n := 0
		if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
			return line
		}
		var all []string
		for range n {
			all = append(all, next())
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return next()
}

// oddNames returns names that a C string, a format string or a protocol could handle wrongly.
func oddNames() []string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return []string{"", " ", "a b", "%s%n%d", "\x00", "a\x00b", "a", "\r\n", "\xff\xfe", "\x01", "\x02", "KEY", "MS",
		"ключ☃", "{tag}rest", string(all),
		strings.Repeat("k", 512<<10), strings.Repeat("k", 512<<10-1) + "\x00"}
}

// Calls on each kind of key. If a foreign value is at KEY, each of these calls is an error.
var (
	windowCalls = []string{"GO.WINDOW KEY 5 3600", "GO.WINDOW KEY 5 3600 0", "GO.WINDOW KEY 5 3600 -9",
		"GO.WINDOW KEY 5 3600 6", "GO.WINDOW KEY 5 3600 3 UPTO", "GO.WINDOW KEY 5 3600 9 FORCE", "GO.ALL KEY WINDOW 5 3600 9 FORCE", "GO.WINDOW KEY 500 60000 1 EXACT", "GO.WINDOW_RO KEY 5 3600",
		"GO.ALL KEY WINDOW 5 3600", "GO.ALL other THROTTLE 5 1 60 KEY KEY WINDOW 5 3600 -9 EXACT", "GO.ALL_RO KEY WINDOW 5 3600 6"}
	quotaCalls = []string{"GO.QUOTA KEY 5 3600", "GO.QUOTA KEY 5 3600 0", "GO.QUOTA KEY 5 3600 -9",
		"GO.QUOTA KEY 5 3600 6", "GO.QUOTA KEY 5 3600 3 UPTO ALIGN 0", "GO.QUOTA KEY 5 3600 9 FORCE", "GO.ALL KEY QUOTA 5 3600 9 FORCE", "GO.QUOTA_RO KEY 5 3600",
		"GO.ALL KEY QUOTA 5 3600", "GO.ALL other THROTTLE 5 1 60 KEY KEY QUOTA 5 3600 0", "GO.ALL_RO KEY QUOTA 5 3600 6"}
	leaseCalls = []string{"GO.LEASE KEY 5 3600 a", "GO.LEASE KEY 1 3600 b", "GO.RELEASE KEY a", "GO.RELEASE KEY a b c", "GO.LEASE_RO KEY 5 3600 a",
		"GO.ALL KEY LEASE 5 3600 a", "GO.ALL other THROTTLE 5 1 60 KEY KEY LEASE 5 3600 b", "GO.ALL_RO KEY LEASE 5 3600 a"}
)
