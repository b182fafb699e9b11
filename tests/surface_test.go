package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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

// keyFlags is what a key spec says of the keys of a command.
func keyFlags(c sample) []string {
	if c.writes() {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

// What is promised of the commands, and that the table says the same.
func TestSurface_commandInfo(t *testing.T) {
	s := start(t, options{})
	w := s.wire()
	for _, row := range commands.Table {
		want := samples[row.Name]
		reply, ok := w.do("COMMAND", "INFO", row.Name).([]any)[0].([]any)
		require.True(t, ok, row.Name)
		assert.True(t, strings.EqualFold(row.Name, reply[0].(string)), "%s: %v", row.Name, reply[0])
		assert.Equal(t, want.arity, reply[1], row.Name)
		assert.EqualValues(t, row.Arity, reply[1], row.Name)
		assert.ElementsMatch(t, append(strings.Fields(want.flags), "module"), wordsOf(reply[2]), row.Name)
		assert.Equal(t, strings.ReplaceAll(row.Flags, "deny-oom", "denyoom"),
			strings.TrimSuffix(want.flags, " movablekeys"), row.Name)
		if s.hasACLAPI() {
			categories := []string{"@read", "@slow"}
			if want.writes() {
				categories[0] = "@write"
			}
			if strings.Contains(want.flags, "fast") {
				categories[1] = "@fast"
			}
			assert.Subset(t, wordsOf(reply[6]), categories, row.Name)
		}

		specs := reply[8].([]any)
		require.Len(t, specs, 1, row.Name)
		spec := dict(t, specs[0])
		assert.ElementsMatch(t, keyFlags(want), wordsOf(spec["flags"]), row.Name)
		begin, find := dict(t, spec["begin_search"]), dict(t, spec["find_keys"])
		assert.Equal(t, "index", begin["type"], row.Name)
		assert.Equal(t, map[string]any{"index": int64(1)}, dict(t, begin["spec"]), row.Name)
		if strings.Contains(want.flags, "movablekeys") {
			assert.Equal(t, []any{int64(0), int64(0), int64(0)}, reply[3:6], "%s: first key, last, step", row.Name)
			assert.Equal(t, "keynum", find["type"], row.Name)
			assert.Equal(t, map[string]any{"keynumidx": int64(0), "firstkey": int64(1), "keystep": int64(1)},
				dict(t, find["spec"]), row.Name)
			continue
		}
		assert.Equal(t, []any{int64(1), int64(1), int64(1)}, reply[3:6], "%s: first key, last, step", row.Name)
		assert.Equal(t, "range", find["type"], row.Name)
		assert.Equal(t, map[string]any{"lastkey": int64(0), "keystep": int64(1), "limit": int64(0)},
			dict(t, find["spec"]), row.Name)
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
			checkArgs(t, row.Name, row.Args, got["arguments"])
		}
		// What is documented is what is counted: mandatory words and the name.
		assert.Equal(t, 1+wordsNeeded(row.Args), row.Least(), row.Name)
	}
}

func wordsNeeded(args []commands.Arg) (n int) {
	for _, arg := range args {
		switch {
		case arg.Optional:
		case arg.Type == commands.ArgBlock:
			n += wordsNeeded(arg.Sub)
		default:
			n++
		}
	}
	return n
}

func checkArgs(t *testing.T, where string, want []commands.Arg, got any) {
	t.Helper()
	args, ok := got.([]any)
	require.True(t, ok, "%s: %v", where, got)
	require.Len(t, args, len(want), where)
	for i, arg := range want {
		checkArg(t, where+" "+arg.Name, arg, dict(t, args[i]))
	}
}

func checkArg(t *testing.T, where string, want commands.Arg, got map[string]any) {
	t.Helper()
	assert.True(t, strings.EqualFold(want.Name, got["name"].(string)), "%s: %v", where, got["name"])
	assert.Equal(t, map[commands.ArgType]string{
		commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgString: "string",
		commands.ArgToken: "pure-token", commands.ArgBlock: "block",
	}[want.Type], got["type"], where)
	assert.NotEmpty(t, want.Summary, where)
	assert.Equal(t, want.Summary, got["summary"], where)
	var flags []string
	if got["flags"] != nil {
		flags = wordsOf(got["flags"])
	}
	assert.Equal(t, want.Optional, slices.Contains(flags, "optional"), where)
	assert.Equal(t, want.Multiple, slices.Contains(flags, "multiple"), where)
	switch {
	case want.Type == commands.ArgToken:
		assert.Equal(t, want.Name, got["token"], where)
	case want.Token != "":
		assert.Equal(t, want.Token, got["token"], where)
	default:
		assert.NotContains(t, got, "token", where)
	}
	if want.Type == commands.ArgKey {
		assert.Equal(t, int64(0), got["key_spec_index"], where)
	} else {
		assert.NotContains(t, got, "key_spec_index", where)
	}
	if want.Type == commands.ArgBlock {
		checkArgs(t, where, want.Sub, got["arguments"])
	}
}

// What the table cannot prove of itself: how a token with a value and a block look.
func TestSurface_commandDocsOfWhatIsNested(t *testing.T) {
	w := start(t, options{}).wire()
	arguments := func(name string) map[string]map[string]any {
		byName := map[string]map[string]any{}
		for _, docs := range dict(t, w.do("COMMAND", "DOCS", name)) {
			for _, arg := range dict(t, docs)["arguments"].([]any) {
				a := dict(t, arg)
				byName[a["name"].(string)] = a
			}
		}
		return byName
	}
	offset := arguments("GO.QUOTA")["offset"]
	assert.Equal(t, "ALIGN", offset["token"])
	assert.Equal(t, "integer", offset["type"])
	assert.Equal(t, []any{status("optional")}, offset["flags"])

	several := arguments("GO.MTHROTTLE")
	assert.Equal(t, []any{status("multiple")}, several["key"]["flags"])
	assert.Equal(t, []any{status("multiple")}, several["limit"]["flags"])
	var block []string
	for _, arg := range several["limit"]["arguments"].([]any) {
		block = append(block, dict(t, arg)["name"].(string))
	}
	assert.Equal(t, []string{"max_burst", "count", "period", "quantity"}, block)
	assert.Equal(t, []any{status("multiple")}, arguments("GO.RELEASE")["id"]["flags"])
}

// getKeys returns the keys that the server finds in a call, by both of its commands.
func getKeys(t *testing.T, w *wire, call []any, flags []string) (keys []any) {
	t.Helper()
	keys, ok := w.do(append([]any{"COMMAND", "GETKEYS"}, call...)...).([]any)
	require.True(t, ok, "%v", call)
	both := w.do(append([]any{"COMMAND", "GETKEYSANDFLAGS"}, call...)...).([]any)
	require.Len(t, both, len(keys))
	for i := range both {
		assert.Equal(t, keys[i], both[i].([]any)[0], "%v", call)
		assert.ElementsMatch(t, flags, wordsOf(both[i].([]any)[1]), "%v", call)
	}
	return keys
}

func TestSurface_commandGetKeys(t *testing.T) {
	w := start(t, options{}).wire()
	for name, c := range samples {
		want := []any{"the key"}
		if name == "GO.MTHROTTLE" {
			want = append(want, "the key")
		}
		assert.Equal(t, want, getKeys(t, w, c.on("the key"), keyFlags(c)), name)
	}
	// All the keys of several limits, to the last one.
	call, want := []any{"GO.MTHROTTLE", 128}, []any{}
	for i := range 128 {
		want = append(want, fmt.Sprintf("key %d", i))
	}
	call = append(call, want...)
	for range 128 {
		call = append(call, 1, 2, 3, 4)
	}
	assert.Equal(t, want, getKeys(t, w, call, keyFlags(sample{})))
	assert.Equal(t, want, getKeys(t, w, append(call, "MS"), keyFlags(sample{})))
}

func TestSurface_infoCounts(t *testing.T) {
	s := start(t, options{})
	for _, call := range []string{
		"GO.THROTTLE k 1 1 3600", "GO.THROTTLE k 1 1 3600", // admitted
		"GO.THROTTLE k 1 1 3600 0", "GO.THROTTLE k 1 1 3600 -1", // a peek, a refund
		"GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 3", // limited
		"GO.THROTTLE k x 1 3600", "GO.THROTTLE s 1 1 3600", // errors
		"CL.THROTTLE c 0 1 3600", "CL.THROTTLE c 0 1 3600", "CL.THROTTLE s 0 1 3600", "CL.THROTTLE k 0 0 3600",
		"GO.WINDOW w 1 3600", "GO.WINDOW w 1 3600", "GO.WINDOW w 1 3600 0", "GO.WINDOW w 1 3600 -1", "GO.WINDOW s 1 3600",
		"GO.QUOTA q 1 3600 2 UPTO", "GO.QUOTA q 1 3600 2 UPTO", "GO.QUOTA q 1 3600 -9", "GO.QUOTA q 1 3600 1 1",
		"GO.MTHROTTLE 2 m m 0 1 60 1 0 1 60 1", "GO.MTHROTTLE 1 m 0 1 60 1", "GO.MTHROTTLE x m 0 1 60 1",
		"GO.MTHROTTLE 2 m s 0 1 60 0 0 1 60 0", "GO.MTHROTTLE 3 m m 0 1 60 1 0 1 60 1", "GO.MTHROTTLE 1 m 0 1 60",
		"GO.LEASE l 1 60 a", "GO.LEASE l 1 60 a", "GO.LEASE l 1 60 b", "GO.LEASE l 0 60 b",
		"GO.RELEASE l b", "GO.RELEASE l a b", "GO.RELEASE s a",
		"GO.WINDOW_RO w 1 3600", "GO.WINDOW_RO w 1 3600 2", "GO.WINDOW_RO s 1 3600",
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
	assert.Equal(t, "admitted=3,limited=1,errors=1", info["gothrottle_go.window"])
	assert.Equal(t, "admitted=2,limited=1,errors=1", info["gothrottle_go.quota"])
	assert.Equal(t, "admitted=1,limited=1,errors=3", info["gothrottle_go.mthrottle"])
	assert.Equal(t, "admitted=2,limited=1,errors=1", info["gothrottle_go.lease"])
	assert.Equal(t, "admitted=2,limited=0,errors=1", info["gothrottle_go.release"])
	assert.Equal(t, "admitted=1,limited=1,errors=1", info["gothrottle_go.window_ro"])
	for name := range samples {
		assert.Contains(t, info, "gothrottle_"+strings.ToLower(name))
	}
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
