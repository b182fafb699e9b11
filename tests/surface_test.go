package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// dict reads a reply of alternating names and values, as RESP2 has them.
func dict(t testing.TB, v any) map[string]any {
	t.Helper()
	all, ok := v.([]any)
	require.True(t, ok, "%#v", v)
	require.Zero(t, len(all)%2)
	m := map[string]any{}
	for i := 0; i < len(all); i += 2 {
		m[fmt.Sprint(all[i])] = all[i+1]
	}
	return m
}

func wordsOf(v any) (all []string) {
	for _, word := range v.([]any) {
		all = append(all, fmt.Sprint(word))
	}
	return all
}

// hasACLAPI says whether modules can give their commands categories: since 7.2.
func (s *server) hasACLAPI() bool { return s.since(7, 2) }

// What is promised of the commands, beside what the table says of them.
func TestSurface_commandInfoAsPromised(t *testing.T) {
	s := start(t, options{})
	w := s.wire()
	for _, name := range ourNames {
		reply := w.do("COMMAND", "INFO", name).([]any)[0].([]any)
		// redis-cell registers no arity: with too few words it fails in EXEC, not before.
		arity := map[string]int64{"GO.THROTTLE": -5, "CL.THROTTLE": -1}[name]
		assert.Equal(t, arity, reply[1], "%s: arity", name)
		assert.ElementsMatch(t, []string{"write", "denyoom", "fast", "module"}, wordsOf(reply[2]), name)
	}
}

// And the table is what the server says.
func TestSurface_commandInfo(t *testing.T) {
	s := start(t, options{})
	w := s.wire()
	for _, row := range commands.Table {
		reply, ok := w.do("COMMAND", "INFO", row.Name).([]any)[0].([]any)
		require.True(t, ok, row.Name)
		assert.True(t, strings.EqualFold(row.Name, reply[0].(string)), "%s: %v", row.Name, reply[0])
		assert.EqualValues(t, row.Arity, reply[1], row.Name)
		flags := append(strings.Fields(strings.ReplaceAll(row.Flags, "deny-oom", "denyoom")), "module")
		assert.ElementsMatch(t, flags, wordsOf(reply[2]), row.Name)
		assert.Equal(t, []any{int64(1), int64(1), int64(1)}, reply[3:6], "%s: first key, last, step", row.Name)
		if s.hasACLAPI() {
			assert.Subset(t, wordsOf(reply[6]), []string{"@write", "@fast"}, row.Name)
		}
		specs := reply[8].([]any)
		require.Len(t, specs, 1, row.Name)
		spec := dict(t, specs[0])
		assert.ElementsMatch(t, []string{"RW", "access", "update"}, wordsOf(spec["flags"]), row.Name)
	}
}

func TestSurface_commandDocs(t *testing.T) {
	s := start(t, options{})
	w := s.wire()
	for _, row := range commands.Table {
		reply := dict(t, w.do("COMMAND", "DOCS", row.Name))
		require.Len(t, reply, 1, row.Name)
		for name, docs := range reply {
			assert.True(t, strings.EqualFold(row.Name, name), name)
			got := dict(t, docs)
			assert.Equal(t, row.Summary, got["summary"])
			assert.Equal(t, row.Since, got["since"])
			assert.Equal(t, row.Complexity, got["complexity"])
			assert.Equal(t, "module", got["group"])
			args, ok := got["arguments"].([]any)
			require.True(t, ok, row.Name)
			require.Len(t, args, len(row.Args), row.Name)
			for i, arg := range row.Args {
				checkArg(t, arg, dict(t, args[i]))
			}
		}
		// What is documented is what is counted: mandatory arguments and the name.
		needed := 1
		for _, arg := range row.Args {
			if !arg.Optional {
				needed++
			}
		}
		assert.Equal(t, needed, row.Least(), row.Name)
	}
}

func checkArg(t *testing.T, want commands.Arg, got map[string]any) {
	t.Helper()
	assert.True(t, strings.EqualFold(want.Name, got["name"].(string)), "%v, want %s", got["name"], want.Name)
	assert.Equal(t, map[commands.ArgType]string{
		commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgToken: "pure-token",
	}[want.Type], got["type"], want.Name)
	assert.NotEmpty(t, want.Summary, want.Name)
	assert.Equal(t, want.Summary, got["summary"], want.Name)
	optional := got["flags"] != nil && slices.Contains(wordsOf(got["flags"]), "optional")
	assert.Equal(t, want.Optional, optional, want.Name)
	if want.Type == commands.ArgToken {
		assert.Equal(t, want.Name, got["token"])
	}
	if want.Type == commands.ArgKey {
		assert.Equal(t, int64(0), got["key_spec_index"])
	}
}

func TestSurface_commandGetKeys(t *testing.T) {
	s := start(t, options{})
	w := s.wire()
	for _, row := range commands.Table {
		call := []any{"COMMAND", "GETKEYS", row.Name, "the key", 15, 30, 60}
		assert.Equal(t, []any{"the key"}, w.do(call...), row.Name)
		call[1] = "GETKEYSANDFLAGS"
		reply := w.do(append(call, 1)...).([]any)
		require.Len(t, reply, 1, row.Name)
		assert.Equal(t, "the key", reply[0].([]any)[0], row.Name)
		assert.ElementsMatch(t, []string{"RW", "access", "update"}, wordsOf(reply[0].([]any)[1]), row.Name)
	}
}

// Users are granted the command by name, and by category where the server has the API.
func TestSurface_acl(t *testing.T) {
	s := start(t, options{})
	categories := wordsOf(s.wire().do("ACL", "CAT"))
	for i, c := range []struct {
		rules string
		may   bool
	}{
		{"~* -@all +go.throttle", true},
		{"~* -@all +GO.THROTTLE", true},
		{"~* +@all -go.throttle", false},
		{"~* -@all +cl.throttle", false},
		{"~* -@all +@read", false},
		{"~* -@all +@write", s.hasACLAPI()},
		{"~* -@all +@fast", s.hasACLAPI()},
		{"~* -@all +@slow", false},
		{"~user:* -@all +go.throttle", true},
		{"~other:* -@all +go.throttle", false},
		{"%R~* -@all +go.throttle", false},
		{"%W~* -@all +go.throttle", false},
		{"%RW~* -@all +go.throttle", true},
		{"~* -@all +@throttle", true},
	} {
		if strings.Contains(c.rules, "@throttle") && !slices.Contains(categories, "throttle") {
			assert.False(t, s.since(7, 4), "since 7.4 modules can add a category")
			continue
		}
		user := fmt.Sprintf("user%d", i)
		set := append([]any{"ACL", "SETUSER", user, "on", "nopass"}, fields(c.rules)...)
		require.NoError(t, s.Do(ctx, append(set, "+auth")...).Err(), c.rules)
		w := s.wire()
		require.Equal(t, status("OK"), w.do("AUTH", user, "x"))
		reply := w.do("GO.THROTTLE", "user:1", 15, 30, 60)
		if c.may {
			assert.IsType(t, []any{}, reply, "%s: %v", c.rules, reply)
		} else if assert.IsType(t, wireError(""), reply, c.rules) {
			assert.Regexp(t, "^NOPERM ", reply, c.rules)
		}
	}
}

// The events that the effects would give if a client sent them, each once.
func TestSurface_keyspaceEvents(t *testing.T) {
	s := start(t, options{args: []string{"--notify-keyspace-events", "KA"}})
	sub := s.PSubscribe(ctx, "__keyspace@0__:k", "mark")
	defer sub.Close()
	for range 2 {
		_, err := sub.Receive(ctx) // that it is subscribed
		require.NoError(t, err)
	}
	events := func() (all []string) {
		require.NoError(t, s.Publish(ctx, "mark", "").Err())
		for {
			select {
			case m := <-sub.Channel():
				if m.Channel == "mark" {
					return all
				}
				all = append(all, m.Payload)
			case <-time.After(patience):
				require.Fail(t, "no mark")
			}
		}
	}
	for _, c := range []struct {
		call string
		want []string
	}{
		{"k 99 100 360000 0", nil},
		{"k 99 100 360000 -1", nil},
		{"k 99 100 360000 101", nil},
		{"k 99 100 360000 1", []string{"hset", "expire"}},
		{"k 99 100 360000 1", []string{"hset"}},
		{"k 99 100 360000 0", nil},
		{"k 99 100 360000 99", nil},
		{"k x 100 360000 99", nil},
		{"k 99 100 360000 -1", []string{"hset"}},
		{"k 99 100 360000 99", []string{"hset", "expire"}},
		{"k 99 100 6000 1", []string{"hset", "expire"}}, // denied, but it brings a new rate
		{"k 99 100 6000 1", nil},
		{"k 99 100 6000 -100", []string{"del"}},
		{"k 99 100 6000 -100", nil},
	} {
		s.Do(ctx, append([]any{"GO.THROTTLE"}, fields(c.call)...)...)
		assert.Equal(t, c.want, withoutNew(events()), c.call)
	}
	// A string that becomes a hash was deleted first.
	s.cell("k", 10_000_000)
	events()
	s.throttle("k", 99, 100, 360000)
	assert.Equal(t, []string{"del", "hset", "expire"}, withoutNew(events()), "adoption")
}

// withoutNew drops the server's own event for a key that was not there.
func withoutNew(all []string) []string {
	return slices.DeleteFunc(all, func(e string) bool { return e == "new" })
}

func TestSurface_infoCounts(t *testing.T) {
	s := start(t, options{})
	for _, call := range []string{
		"GO.THROTTLE k 1 1 3600", "GO.THROTTLE k 1 1 3600", // admitted
		"GO.THROTTLE k 1 1 3600 0", "GO.THROTTLE k 1 1 3600 -1", // a peek, a refund
		"GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 3", // limited
		"GO.THROTTLE k x 1 3600", "GO.THROTTLE s 1 1 3600", // errors
		"CL.THROTTLE c 0 1 3600", "CL.THROTTLE c 0 1 3600", "CL.THROTTLE s 0 1 3600", "CL.THROTTLE k 0 0 3600",
	} {
		s.SAdd(ctx, "s", "a")
		s.Do(ctx, fields(call)...)
	}
	info := map[string]string{}
	for line := range strings.Lines(s.Info(ctx, "gothrottle").Val()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[strings.ToLower(name)] = value
		}
	}
	assert.Equal(t, "admitted=4,limited=3,errors=2", info["gothrottle_go.throttle"])
	assert.Equal(t, "admitted=1,limited=1,errors=2", info["gothrottle_cl.throttle"])
	assert.Equal(t, "0", info["gothrottle_clock_lead_us"])
	assert.Regexp(t, `^\d+\.\d+\.\d+$`, info["gothrottle_version"])
	// It is in the whole of INFO too, where monitoring finds it.
	assert.Contains(t, s.Info(ctx, "everything").Val(), "gothrottle_version:")
}

func TestSurface_moduleList(t *testing.T) {
	s := start(t, options{})
	var module map[string]any
	for _, m := range s.wire().do("MODULE", "LIST").([]any) { // a server may have modules of its own
		if one := dict(t, m); one["name"] == "gothrottle" {
			module = one
		}
	}
	var a, b, c int64
	_, err := fmt.Sscanf(s.info("gothrottle", "gothrottle_version"), "%d.%d.%d", &a, &b, &c)
	require.NoError(t, err)
	assert.Equal(t, a*10000+b*100+c, module["ver"])

	var names []string
	for _, row := range commands.Table {
		names = append(names, strings.ToLower(row.Name))
	}
	listed := wordsOf(s.wire().do("COMMAND", "LIST", "FILTERBY", "MODULE", "gothrottle"))
	for i := range listed {
		listed[i] = strings.ToLower(listed[i])
	}
	assert.ElementsMatch(t, names, listed)
}
