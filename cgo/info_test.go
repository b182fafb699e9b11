package cgo_test

// No transcript shows INFO. TestRandom shows what a call counts, and the lead of the clock.

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

// numbers returns the numeric fields of INFO.
func numbers(h *fakehost.Host) map[string]int {
	all := map[string]int{}
	for line := range strings.SplitSeq(h.Info(), "\r\n") {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "gothrottle_"), ":")
		if n, err := strconv.Atoi(value); err == nil {
			all[name] = n
		}
	}
	return all
}

func number(t *testing.T, h *fakehost.Host, name string) int {
	t.Helper()
	n, found := numbers(h)[name]
	if !found {
		t.Fatalf("no number %s in %q", name, h.Info())
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
	reference, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, fields []string
	_, section, _ := strings.Cut(string(reference), "\n## INFO gothrottle\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("[|,] `(gothrottle_.*?)`").FindAllStringSubmatch(section, -1) {
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

// Each policy has four counters, of which TestRandom shows what they count. A change of the policies keeps the counters of a
// policy that keeps its name.
func TestInfo_policies(t *testing.T) {
	h := loaded(t)
	longest := strings.Repeat("n", 64)
	h.ConfigSet("gothrottle.policies", "b QUOTA 20 1h; a SHADOW QUOTA 1 1h; "+longest+" QUOTA 9 1h")
	for _, line := range []string{"GO.POLICY b:k 17", "GO.POLICY b:k", "GO.POLICY b:k 3", "GO.POLICY_RO b:k 9", "GO.POLICY a:k", "GO.POLICY a:k",
		"GO.POLICY " + longest + ":k 9", "GO.POLICY " + longest + "n:k"} {
		call(h, line)
	}
	shows := func(policies int, want map[string]int) {
		t.Helper()
		fields := 0
		for field, n := range numbers(h) {
			if name, found := strings.CutPrefix(field, "policies_"); found {
				if fields++; n != want[name] {
					t.Errorf("%s is %d, want %d", name, n, want[name])
				}
			}
		}
		if fields != 4*policies {
			t.Errorf("%d fields of %d policies", fields, policies)
		}
	}
	shows(3, map[string]int{"a_admitted": 1, "a_shadowed": 1, "a_near": 1, "b_admitted": 2, "b_limited": 2, "b_near": 1,
		longest + "_admitted": 1, longest + "_near": 1})
	const before = "a QUOTA 1 1h; c QUOTA 5 1h; b WINDOW 20 1h"
	h.ConfigSet("gothrottle.policies", before)
	h.ConfigSet("gothrottle.top-keys", "3")
	call(h, "GO.QUOTA t 1 1h 2")
	top := call(h, "GO.TOP")
	if text := h.ConfigFails("gothrottle.policies", "", before) + h.ConfigFails("gothrottle.top-keys", "0", "3"); text != "" {
		t.Error(text)
	}
	wantReply(t, h, "GO.TOP", top) // a refused CONFIG SET changes nothing
	runtime.GC()
	call(h, "GO.POLICY a:k")
	shows(3, map[string]int{"a_admitted": 1, "a_limited": 1, "a_shadowed": 1, "a_near": 1, "b_admitted": 2, "b_limited": 2, "b_near": 1})
	h.ConfigSet("gothrottle.policies", "n QUOTA 9 1h; p THROTTLE 9 10 1s, THROTTLE 99 1 10h")
	shows(2, nil)
	h.ConfigSet("gothrottle.policies", "")
	shows(0, nil)
}

// No transcript has databases, or a server without the configuration top-keys. To set its value again changes nothing.
func TestTop(t *testing.T) {
	h := newHost(t)
	h.Load()
	if n := number(t, h, "top_keys"); n != 0 {
		t.Errorf("%d top keys", n)
	}
	for db, want := range []string{"[[0:k 1 0]]", "[[0:k 1 0] [1:k 1 0]]"} {
		if text := h.ConfigSet("gothrottle.top-keys", "2"); text != "" {
			t.Error(text)
		}
		h.Set(fakehost.Database, db)
		call(h, "GO.QUOTA k 1 60 9")
		wantReply(t, h, "GO.TOP", want)
	}
}
