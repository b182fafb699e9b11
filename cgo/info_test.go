package cgo_test

// No transcript shows INFO.

import (
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

// number returns the value of a numeric field of INFO.
func number(t *testing.T, h *fakehost.Host, name string) int {
	t.Helper()
	_, rest, found := strings.Cut(h.Info(), "\r\ngothrottle_"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(value)
	if !found || err != nil {
		t.Fatalf("no number %s in %q", name, h.Info())
	}
	return n
}

// counters returns how many calls of a command were admitted, were limited, asked for no units, were
// errors and were limited by a SHADOW.
func counters(t *testing.T, h *fakehost.Host, command string) (n [5]int) {
	t.Helper()
	for i, name := range []string{"admitted", "limited", "other", "errors", "shadowed"} {
		n[i] = number(t, h, command+"_"+name)
	}
	return n
}

// Each field but the version is a number on a line of its own: exporters read only such fields. They are those of the
// reference.
func TestInfo_fields(t *testing.T) {
	h := loaded(t)
	if n := number(t, h, "version_number"); n != 1_20_03 || h.Version() != n || !strings.Contains(h.Info(), "\r\ngothrottle_version:1.20.3\r\n") {
		t.Errorf("version %d of %q", h.Version(), h.Info())
	}
	var listed, fields []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(gothrottle_.*?)` \\|").FindAllStringSubmatch(section(t, "INFO gothrottle"), -1) {
		for _, row := range commands.Table {
			listed = append(listed, strings.NewReplacer("<c>", row.InfoName(), "<p>", "sample").Replace(m[1]))
		}
	}
	for _, line := range strings.Split(h.Info(), "\r\n")[1:] {
		name, value, _ := strings.Cut(line, ":")
		if _, err := strconv.Atoi(value); err != nil && name != "gothrottle_version" && line != "" {
			t.Errorf("not a number: %q", line)
		}
		fields = append(fields, name)
	}
	slices.Sort(listed)
	slices.Sort(fields)
	if listed = slices.Compact(listed); !slices.Equal(fields[1:], listed) { // the last line is empty
		t.Errorf("the fields are\n%q, the reference has\n%q", fields, listed)
	}
}

// Only calls that ask for units are admitted or limited. Peeks, refunds and releases are other
// calls. A call with too few or too many words is an error, too. No other command counts a call.
func TestInfo_counters(t *testing.T) {
	const admitted, limited, other, errors, shadowed = 0, 1, 2, 3, 4
	h := loaded(t)
	h.ConfigSet("gothrottle.policies", "p QUOTA 1 1s; s SHADOW QUOTA 1 1s")
	h.Set(fakehost.AnyArity, 1)
	for _, row := range []struct {
		line string
		want int
	}{
		{"GO.THROTTLE k 1 1 1", admitted}, {"GO.THROTTLE k 1 1 1 0", other}, {"GO.THROTTLE k 1 1 1 -1", other},
		{"GO.THROTTLE k 1 1 1 5 UPTO", admitted}, {"GO.THROTTLE k 1 1 1 5 UPTO", limited}, {"GO.THROTTLE k 1 1 1 3", limited},
		{"GO.THROTTLE k 0 1 1 0", other}, {"GO.THROTTLE k 1 1 x", errors}, {"GO.THROTTLE k 1", errors},
		{"GO.THROTTLE k 1 1 1 9 FORCE", admitted}, {"GO.THROTTLE k 1 1 1 0 FORCE", other}, {"GO.THROTTLE k 1 1 1 -9 FORCE", other},
		{"GO.THROTTLE k 1 1 1 2 RESERVE 9", admitted}, {"GO.THROTTLE k 1 1 1 RESERVE 9", admitted}, {"GO.THROTTLE k 1 1 1 RESERVE 0", limited},
		{"GO.THROTTLE k 1 1 1 0 RESERVE 9", other}, {"GO.THROTTLE k 1 1 1 -1 RESERVE 9", other},
		{"GO.ALL k THROTTLE 1 1 1 0 THROTTLE 1 1 1 9 FORCE", admitted}, {"GO.ALL k THROTTLE 1 1 1 0 THROTTLE 1 1 1 -9 FORCE", other},
		{"CL.THROTTLE k 1 1 1 1 1", errors}, {"CL.THROTTLE k 1 1 1", limited}, {"CL.THROTTLE k 1 1 1 0", other},
		{"GO.WINDOW w 1 1", admitted}, {"GO.WINDOW w 1 1", limited}, {"GO.WINDOW w 1 1 0", other}, {"GO.WINDOW w 1 1 -1", other},
		{"GO.WINDOW k 1 1", errors}, {"GO.WINDOW w", errors},
		{"GO.QUOTA q 1 1", admitted}, {"GO.QUOTA q 1 1", limited}, {"GO.QUOTA q 1 1 0", other}, {"GO.QUOTA q 1 1 -1", other},
		{"GO.QUOTA q 1 1 ALIGN", errors},
		{"GO.LEASE l 1 60 a", admitted}, {"GO.LEASE l 1 60 a", admitted}, {"GO.LEASE l 1 60 b", limited}, {"GO.LEASE l 1 60 a x", errors},
		{"GO.RELEASE l b", other}, {"GO.RELEASE l a", other}, {"GO.RELEASE l a", other}, {"GO.RELEASE k b", errors}, {"GO.RELEASE k", errors},
		{"GO.ALL q QUOTA 1 1 KEY l LEASE 1 1 a", admitted}, {"GO.ALL q QUOTA 1 1", limited}, {"GO.ALL q QUOTA 1 1 0", other},
		{"GO.ALL q QUOTA 1 1 0 KEY r QUOTA 1 1 -1", other}, {"GO.ALL q QUOTA 1 1 0 KEY r QUOTA 1 1 1", admitted},
		{"GO.ALL q QUOTA 1 1 0 KEY r QUOTA 1 1 2", limited}, {"GO.ALL l LEASE 1 1 a", admitted}, {"GO.ALL q QUOTA 1 1 x", errors},
		{"GO.ALL q LIMIT 1 1 1", errors}, {"GO.ALL k QUOTA 1 1", errors}, {"GO.ALL k", errors},
		{"GO.INFO v", other}, {"GO.ALL v WINDOW 5 1 0", other}, {"GO.ALL v WINDOW 5 1 -1 KEY t THROTTLE 1 1 1 0", other}, {"GO.ALL v WINDOW 5 1 KEY t THROTTLE 1 1 1 0", admitted},
		{"GO.POLICY p:k", admitted}, {"GO.POLICY p:k", limited}, {"GO.POLICY p:k 0", other}, {"GO.POLICY k", errors}, {"GO.POLICY p:k -1", errors},
		{"GO.POLICY", errors}, {"GO.POLICY s:k", admitted}, {"GO.POLICY s:k", shadowed}, {"GO.POLICY s:k 0", other}, {"GO.POLICY s:k 2", shadowed},
		{"GO.POLICY_RO s:k", shadowed}, {"GO.POLICY_RO p:k 0", other},
		{"GO.THROTTLE_RO k 15 30 60", admitted}, {"GO.THROTTLE_RO k 15 30 60 17", limited}, {"GO.THROTTLE_RO k 15 30 60 0", other},
		{"GO.WINDOW_RO w 15 30", admitted}, {"GO.QUOTA_RO q 15 30 16", limited}, {"GO.LEASE_RO l 1 60 b", limited},
		{"GO.LEASE_RO l 2 60 b", admitted}, {"GO.ALL_RO r QUOTA 5 1", admitted}, {"GO.ALL_RO r", errors},
	} {
		name, _, _ := strings.Cut(row.line, " ")
		want := map[string][5]int{}
		for _, c := range commands.Table {
			n := counters(t, h, c.InfoName())
			if c.Name == name {
				n[row.want]++
			}
			want[c.InfoName()] = n
		}
		got := call(h, row.line)
		for c, want := range want {
			if now := counters(t, h, c); now != want {
				t.Errorf("%s: reply %v: %s counts %v, want %v", row.line, got, c, now, want)
			}
		}
	}
}

// Each policy has four counters. Its near calls are those admitted calls that left at most a tenth of the limit. A
// change of the policies keeps the counters of a policy that keeps its name.
func TestInfo_policies(t *testing.T) {
	h := loaded(t)
	longest := strings.Repeat("n", 64)
	h.ConfigSet("gothrottle.policies", "b QUOTA 20 1h; a SHADOW QUOTA 1 1h; "+longest+" QUOTA 9 1h")
	for _, line := range []string{"GO.POLICY b:k 17", "GO.POLICY b:k", "GO.POLICY b:k 3", "GO.POLICY_RO b:k 9", "GO.POLICY b:k 0", "GO.POLICY b:k x",
		"GO.POLICY a:k", "GO.POLICY a:k", "GO.POLICY " + longest + ":k 9", "GO.POLICY " + longest + "n:k"} {
		call(h, line)
	}
	want := map[string][4]int{"a": {1, 0, 1, 1}, "b": {2, 2, 0, 1}, longest: {1, 0, 0, 1}}
	check := func() {
		t.Helper()
		got := map[string][4]int{}
		for name := range want {
			var n [4]int
			for i, counter := range []string{"admitted", "limited", "shadowed", "near"} {
				n[i] = number(t, h, "policies_"+name+"_"+counter)
			}
			got[name] = n
		}
		if fields := strings.Count(h.Info(), "gothrottle_policies_"); !maps.Equal(got, want) || fields != 4*len(want) {
			t.Errorf("%v, want %v; %d fields", got, want, fields)
		}
	}
	check()
	h.ConfigSet("gothrottle.policies", "a QUOTA 1 1h; c QUOTA 5 1h; b WINDOW 20 1h")
	runtime.GC()
	call(h, "GO.POLICY a:k")
	want = map[string][4]int{"a": {1, 1, 1, 1}, "b": {2, 2, 0, 1}, "c": {}}
	check()
	want = nil
	h.ConfigSet("gothrottle.policies", "")
	check()
}
