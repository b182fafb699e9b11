package cgo_test

// No transcript shows INFO, and its clock only goes forward. TestRandom sets the clock back and compares replies.

import (
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
	const admitted, limited, other, errors, shadowed = "_admitted", "_limited", "_other", "_errors", "_shadowed"
	h := loaded(t)
	h.ConfigSet("gothrottle.policies", "p QUOTA 1 1s; s SHADOW QUOTA 1 1s")
	h.Set(fakehost.AnyArity, 1)
	for _, row := range []struct {
		line, want string
	}{
		{"GO.THROTTLE k 1 1 1", admitted}, {"GO.THROTTLE k 1 1 1 0", other}, {"GO.THROTTLE k 1 1 1 -1", other},
		{"GO.THROTTLE k 1 1 1 5 UPTO", admitted}, {"GO.THROTTLE k 1 1 1 5 UPTO", limited}, {"GO.THROTTLE k 1 1 1 3", limited},
		{"GO.THROTTLE k 0 1 1 0", other}, {"GO.THROTTLE k 1 1 x", errors}, {"GO.THROTTLE k 1", errors},
		{"GO.THROTTLE k 1 1 1 9 FORCE", admitted}, {"GO.THROTTLE k 1 1 1 0 FORCE", other}, {"GO.THROTTLE k 1 1 1 -9 FORCE", other},
		{"GO.THROTTLE k 1 1 1 2 RESERVE 9", admitted}, {"GO.THROTTLE k 1 1 1 RESERVE 9", admitted}, {"GO.THROTTLE k 1 1 1 RESERVE 0", limited},
		{"GO.THROTTLE k 1 1 1 0 RESERVE 9", other}, {"GO.THROTTLE k 1 1 1 -1 RESERVE 9", other},
		{"GO.ALL k THROTTLE 1 1 1 0 THROTTLE 1 1 1 9 FORCE", admitted}, {"GO.ALL k THROTTLE 1 1 1 0 THROTTLE 1 1 1 -9 FORCE", other},
		{"CL.THROTTLE k 1 1 1 1 1", errors}, {"CL.THROTTLE k 1 1 1", limited}, {"CL.THROTTLE k 1 1 1 0", other},
		{"GO.WINDOW w 1 1", admitted}, {"GO.WINDOW w 1 1", limited}, {"GO.WINDOW w 1 1 -1", other}, {"GO.WINDOW k 1 1", errors},
		{"GO.QUOTA q 1 1", admitted}, {"GO.QUOTA q 1 1", limited}, {"GO.QUOTA q 1 1 -1", other}, {"GO.QUOTA q 1 1 ALIGN", errors},
		{"GO.LEASE l 1 60 a", admitted}, {"GO.LEASE l 1 60 a", admitted}, {"GO.LEASE l 1 60 b", limited}, {"GO.LEASE l 1 60 a x", errors},
		{"GO.LEASE l 1 60 b 0", other}, {"GO.LEASE l 1 60 a 0", other}, {"GO.LEASE l 1 60 b 2", limited},
		{"GO.ALL q QUOTA 5 1 0 KEY l LEASE 1 60 b 0 SHARE 1", other}, {"GO.ALL l RELEASE b", other}, {"GO.ALL l RELEASE b KEY q QUOTA 5 1 FORCE", limited},
		{"GO.RELEASE l b", other}, {"GO.RELEASE l a", other}, {"GO.RELEASE l a", other}, {"GO.RELEASE k b", errors},
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
		want := numbers(h)
		want[commands.Find(name).InfoName()+row.want]++
		got := call(h, row.line)
		now := numbers(h)
		for name, n := range now {
			if n != want[name] && !strings.HasPrefix(name, "policies_") {
				t.Errorf("%s: reply %v: %s is %d, want %d", row.line, got, name, n, want[name])
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
	for range 95 { // the last six are near the limit of the second clause. At first the other one has less left and decides
		call(h, "GO.POLICY p:k")
		h.Advance(second)
	}
	shows(2, map[string]int{"p_admitted": 95, "p_near": 6})
	h.ConfigSet("gothrottle.policies", "")
	shows(0, nil)
}

// INFO shows the lead that the next call has: with and without traffic, while the server's clock is
// set back and forth, and however often INFO is read.
func TestClock_lead(t *testing.T) {
	h := loaded(t)
	call(h, "GO.THROTTLE_RO k 1 1 1")
	for _, step := range []struct {
		what string
		move func()
		lead int64 // µs
	}{
		{"no lead", func() {}, 0},
		{"a second without traffic", func() { h.Advance(second) }, 0},
		{"set back by an hour without traffic", func() { h.SetNow(h.Now() - 3600*second) }, 3599 * second},
		{"a call", func() { call(h, "GO.THROTTLE_RO k 1 1 1") }, 3599 * second},
		{"10 s without traffic", func() { h.Advance(10 * second) }, 3594 * second},
		{"10 s more without traffic", func() { h.Advance(10 * second) }, 3589 * second},
		{"a call again", func() { call(h, "GO.THROTTLE_RO k 1 1 1") }, 3589 * second},
		{"set back by 100 s more", func() { h.SetNow(h.Now() - 100*second) }, 3689 * second},
		{"set forward by half an hour", func() { h.SetNow(h.Now() + 1800*second) }, 1889 * second},
		{"the server's clock passes the latest call", func() { h.Advance(2000 * second) }, 889 * second},
		{"long enough without traffic", func() { h.Advance(1779 * second) }, 0},
	} {
		step.move()
		for range 2 {
			if got := number(t, h, "clock_lead_us"); got != int(step.lead) {
				t.Errorf("%s: a lead of %d µs, want %d", step.what, got, step.lead)
			}
		}
	}
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
