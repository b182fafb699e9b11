package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// COMMAND INFO says what the command table says. The first word of every call is a key, so
// clients that look no further send the call to the right node.
func TestSurface_commandInfo(t *testing.T) {
	s := start(t, options{})
	w := s.wire()
	for _, row := range samples {
		reply, ok := w.do("COMMAND", "INFO", row.Name).([]any)[0].([]any)
		require.True(t, ok, row.Name)
		assert.True(t, strings.EqualFold(row.Name, reply[0].(string)), "%s: %v", row.Name, reply[0])
		assert.EqualValues(t, row.Arity, reply[1], row.Name)
		assert.ElementsMatch(t, row.flags(), wordsOf(reply[2]), row.Name)
		assert.Equal(t, []any{int64(1), int64(1), int64(1)}, reply[3:6], "%s: first key, last, step", row.Name)
		if s.hasACLAPI() {
			categories := []string{"@read", "@slow"}
			if row.writes() {
				categories[0] = "@write"
			}
			if row.fast() {
				categories[1] = "@fast"
			}
			assert.Subset(t, wordsOf(reply[6]), categories, row.Name)
		}
		// A client that caches replies must not cache ours.
		assert.ElementsMatch(t, []string{"dont_cache", "nondeterministic_output"}, wordsOf(reply[7]), "%s: tips", row.Name)

		specs := reply[8].([]any)
		require.Len(t, specs, 1, row.Name)
		spec := dict(t, specs[0])
		flags := keyFlags(row)
		if row.asks() {
			flags = append(flags, "incomplete") // COMMAND GETKEYS and ACL rules ask the module
		}
		assert.ElementsMatch(t, flags, wordsOf(spec["flags"]), row.Name)
		begin, find := dict(t, spec["begin_search"]), dict(t, spec["find_keys"])
		assert.Equal(t, "index", begin["type"], row.Name)
		assert.Equal(t, map[string]any{"index": int64(1)}, dict(t, begin["spec"]), row.Name)
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
		// The arity is the number of mandatory arguments, and one for the name.
		assert.Equal(t, 1+wordsNeeded(row.Args), row.Least(), row.Name)
	}
}

// COMMAND DOCS shows a token with a value, and a block of arguments.
func TestSurface_commandDocsOfNestedArguments(t *testing.T) {
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

	for name, want := range map[string]map[string]string{ // the options of which a call has one
		"GO.THROTTLE":    {"UPTO": "pure-token", "FORCE": "pure-token", "RESERVE": "integer", "LOCKOUT": "integer"},
		"GO.THROTTLE_RO": {"UPTO": "pure-token", "FORCE": "pure-token", "RESERVE": "integer", "LOCKOUT": "integer"},
		"GO.WINDOW":      {"UPTO": "pure-token", "FORCE": "pure-token"},
		"GO.QUOTA":       {"UPTO": "pure-token", "FORCE": "pure-token"},
	} {
		mode := arguments(name)["mode"]
		assert.Equal(t, "oneof", mode["type"], name)
		assert.Equal(t, []any{status("optional")}, mode["flags"], name)
		got := map[string]string{}
		for _, arg := range mode["arguments"].([]any) {
			a := dict(t, arg)
			got[a["token"].(string)] = a["type"].(string)
		}
		assert.Equal(t, want, got, name)
	}
	assert.Equal(t, "FORCE", arguments("GO.ALL")["force"]["token"])

	several := arguments("GO.ALL")
	assert.Equal(t, "oneof", several["clause"]["type"])
	assert.Equal(t, []any{status("multiple")}, several["clause"]["flags"])
	assert.Equal(t, "block", several["further"]["type"])
	assert.ElementsMatch(t, []any{status("optional"), status("multiple")}, several["further"]["flags"])
	blocks := map[string][]string{}
	for _, kind := range several["clause"]["arguments"].([]any) {
		block := dict(t, kind)
		for _, arg := range block["arguments"].([]any) {
			token := block["token"].(string)
			blocks[token] = append(blocks[token], dict(t, arg)["name"].(string))
		}
	}
	assert.Equal(t, map[string][]string{
		"THROTTLE": {"max_burst", "count", "period", "quantity"},
		"WINDOW":   {"limit", "period", "quantity", "exact"},
		"QUOTA":    {"limit", "period", "quantity", "offset"},
		"LEASE":    {"limit", "ttl", "id"},
	}, blocks)
	assert.Equal(t, []any{status("multiple")}, arguments("GO.RELEASE")["id"]["flags"])
}

func TestSurface_commandGetKeys(t *testing.T) {
	w := start(t, options{}).wire()
	for name, c := range samples {
		assert.Equal(t, []any{c.key("the key")}, getKeys(t, w, c.on("the key"), keyFlags(c)), name)
	}
	for call, want := range map[string][]any{
		"GO.ALL a THROTTLE 1 1 60":                                                 {"a"},
		"GO.ALL a THROTTLE 1 1 60 THROTTLE 1 1 60 3 ms":                            {"a"},
		"GO.ALL a WINDOW 1 60 1 EXACT KEY b QUOTA 1 60 ALIGN 3 key c LEASE 1 60 d": {"a", "b", "c"},
		"GO.ALL KEY LEASE 1 60 KEY KEY MS LEASE 1 60 MS MS":                        {"KEY", "MS"},
		"GO.ALL a LEASE 1 60 KEY KEY b QUOTA 1 60":                                 {"a", "b"},
		"GO.ALL QUOTA QUOTA 1 60 KEY THROTTLE THROTTLE 1 1 60":                     {"QUOTA", "THROTTLE"},
		// Numbers are not looked at, so a wrong number does not hide a key.
		"GO.ALL a THROTTLE x y z KEY b WINDOW 0 -1 99": {"a", "b"},
	} {
		for _, name := range []string{"GO.ALL", "GO.ALL_RO"} {
			words := fields(call)
			words[0] = name
			assert.Equal(t, want, getKeys(t, w, words, keyFlags(samples[name])), call)
		}
	}
	// All keys of GO.ALL, up to the last one.
	call, want := []any{"GO.ALL"}, []any{}
	for i := range 32 {
		if i > 0 {
			call = append(call, "KEY")
		}
		want = append(want, fmt.Sprintf("key %d", i))
		call = append(call, want[i], "QUOTA", 1, 2, 3)
	}
	assert.Equal(t, want, getKeys(t, w, call, keyFlags(samples["GO.ALL"])))
	assert.Equal(t, want, getKeys(t, w, append(call, "MS"), keyFlags(samples["GO.ALL"])))
	// A call that is wrong has no keys.
	for _, call := range []string{"GO.ALL a THROTTLE 1 1", "GO.ALL a b c d", "GO.ALL a QUOTA 1 60 KEY", "GO.ALL a QUOTA 1 60 KEY a QUOTA 1 60"} {
		assert.IsType(t, wireError(""), w.do(append([]any{"COMMAND", "GETKEYS"}, fields(call)...)...), call)
	}
}

// INFO counts calls that ask for units as admitted or limited, calls that ask for none as
// other, and calls that are wrong as errors. The server itself refuses calls with too few words,
// where the arity says so: such calls do not reach the module.
func TestSurface_infoCounts(t *testing.T) {
	s := start(t, options{})
	s.setPolicies("p QUOTA 1 1h; s SHADOW QUOTA 1 1h")
	for _, call := range []string{
		"GO.POLICY p:k", "GO.POLICY p:k", "GO.POLICY p:k 0", "GO.POLICY k", "GO.POLICY p:k -1",
		"GO.POLICY s:k", "GO.POLICY s:k", "GO.POLICY s:k 0", "GO.POLICY s:k 2", "GO.POLICY_RO s:k", "GO.POLICY_RO p:k",
		"GO.THROTTLE k 1 1 3600", "GO.THROTTLE k 1 1 3600 1 UPTO", "GO.THROTTLE k 1 1 1800", // the last one is limited
		"GO.THROTTLE k 1 1 3600 0", "GO.THROTTLE k 1 1 3600 -1", "GO.THROTTLE none 1 1 3600 -1", // a peek, refunds
		"GO.THROTTLE k 1 1 3600 2", "GO.THROTTLE k 1 1 3600 3", // limited
		"GO.THROTTLE k x 1 3600", "GO.THROTTLE s 1 1 3600", // errors
		"CL.THROTTLE c 0 1 3600", "CL.THROTTLE c 0 1 3600", "CL.THROTTLE c 0 1 3600 0", "CL.THROTTLE s 0 1 3600",
		"CL.THROTTLE k 0 0 3600", "CL.THROTTLE k 0", // the module counts the words of CL.THROTTLE itself
		"CL.THROTTLE k 0 1 3600 1 1",
		"GO.WINDOW w 1 3600", "GO.WINDOW w 1 3600", "GO.WINDOW w 1 3600 0", "GO.WINDOW w 1 3600 -1", "GO.WINDOW s 1 3600",
		"GO.QUOTA q 1 3600 2 UPTO", "GO.QUOTA q 1 3600 2 UPTO", "GO.QUOTA q 1 3600 -9", "GO.QUOTA q 1 3600 1 1",
		"GO.ALL m THROTTLE 0 1 60 1 THROTTLE 0 1 60 1", "GO.ALL m THROTTLE 0 1 60 1", "GO.ALL m THROTTLE 0 1 60 0", "GO.ALL x m 1 1",
		"GO.ALL m THROTTLE 0 1 60 -1 THROTTLE 0 1 60 0", "GO.ALL m THROTTLE 0 1 60 0 KEY n LEASE 1 60 a",
		"GO.ALL m THROTTLE 0 1 60 0 KEY s THROTTLE 0 1 60 0", "GO.ALL m THROTTLE 0 1 60 KEY m THROTTLE 0 1 60", "GO.ALL m LEASE 1 60",
		"GO.LEASE l 1 60 a", "GO.LEASE l 1 60 a", "GO.LEASE l 1 60 b", "GO.LEASE l 0 60 b",
		"GO.RELEASE l b", "GO.RELEASE l a b", "GO.RELEASE s a",
		"GO.WINDOW_RO w 1 3600", "GO.WINDOW_RO w 1 3600 2", "GO.WINDOW_RO s 1 3600", "GO.WINDOW_RO w 1 3600 0",
		"GO.ALL_RO w WINDOW 1 3600", "GO.ALL_RO w WINDOW 1 3600 2", "GO.ALL_RO w WINDOW 1 3600 0",
	} {
		s.SAdd(ctx, "s", "a")
		s.Do(ctx, fields(call)...)
	}
	// Calls in EXEC and in scripts count too.
	p := s.TxPipeline()
	p.Do(ctx, "GO.QUOTA", "q9", 1, 3600)
	p.Do(ctx, "CL.THROTTLE", "c9")
	_, _ = p.Exec(ctx)
	s.Eval(ctx, "return redis.call('GO.QUOTA', 'q9', 1, 3600)", nil)
	info := s.counters()
	for name, want := range map[string][5]int{ // admitted, limited, other, errors, shadowed
		"throttle":    {2, 3, 3, 2, 0},
		"cl_throttle": {1, 1, 1, 5, 0},
		"window":      {1, 1, 2, 1, 0},
		"quota":       {2, 2, 1, 1, 0},
		"all":         {2, 1, 2, 4, 0},
		"lease":       {2, 1, 0, 1, 0},
		"release":     {0, 0, 2, 1, 0},
		"window_ro":   {1, 1, 1, 1, 0},
		"all_ro":      {1, 1, 1, 0, 0},
		"policy":      {2, 1, 2, 2, 2},
		"policy_ro":   {0, 1, 0, 0, 1},
	} {
		for i, counter := range []string{"admitted", "limited", "other", "errors", "shadowed"} {
			field := fmt.Sprintf("gothrottle_%s_%s", name, counter)
			assert.Equal(t, fmt.Sprint(want[i]), info[field], field)
		}
	}
}

// All fields of INFO but the version are flat integers, so that exporters can read them.
func TestSurface_infoFields(t *testing.T) {
	s := start(t, options{})
	info := s.counters()
	want := []string{"gothrottle_version", "gothrottle_version_number", "gothrottle_clock_lead_us", "gothrottle_panics", "gothrottle_top_keys"}
	for _, row := range commands.Table {
		c := sample{Command: row}
		for _, counter := range []string{"admitted", "limited", "other", "errors", "shadowed"} {
			want = append(want, c.infoField()+"_"+counter)
		}
	}
	var got []string
	for field, value := range info {
		got = append(got, field)
		if field != "gothrottle_version" {
			assert.Regexp(t, `^\d+$`, value, field)
		}
	}
	assert.ElementsMatch(t, want, got)
	assert.Equal(t, "0", info["gothrottle_clock_lead_us"])
	assert.Equal(t, "0", info["gothrottle_panics"])
	assert.Regexp(t, `^\d+\.\d+\.\d+$`, info["gothrottle_version"])
	// INFO everything has the fields too. INFO alone does not.
	assert.Contains(t, s.Info(ctx, "everything").Val(), "gothrottle_version:")
	assert.NotContains(t, s.Info(ctx).Val(), "gothrottle_version:")
}

func TestSurface_moduleList(t *testing.T) {
	s := start(t, options{})
	var module map[string]any
	for _, m := range s.wire().do("MODULE", "LIST").([]any) { // some servers come with other modules
		if one := dict(t, m); one["name"] == "gothrottle" {
			module = one
		}
	}
	var a, b, c int64
	_, err := fmt.Sscanf(s.info("gothrottle", "gothrottle_version"), "%d.%d.%d", &a, &b, &c)
	require.NoError(t, err)
	assert.Equal(t, a*10000+b*100+c, module["ver"])
	assert.Equal(t, fmt.Sprint(module["ver"]), s.info("gothrottle", "gothrottle_version_number"))

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

// Every row of the command table has a sample, which the other tests call.
func TestSamples_everyCommandHasOne(t *testing.T) {
	for name, c := range samples {
		assert.Regexp(t, "^"+name+" (sample:)?KEY( |$)", c.Sample.Call)
		assert.NotEmpty(t, c.Sample.First, name)
		assert.NotEmpty(t, c.Sample.Second, name)
	}
	assert.Len(t, samples, len(commands.Table)-1)
}
