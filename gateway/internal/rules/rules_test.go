package rules

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"github.com/stretchr/testify/require"
)

// below is a file with a limit, tagged, and a descriptor below it.
func below(limit, keys string) string {
	return "domain: d\nhash_tag: descriptor\ndescriptors:\n- key: m\n  rate_limit: {" + limit + "}\n  descriptors: [{key: t, " + keys + "}]"
}

func matchRule(match string) string {
	return "domain: d\nhttp: {rules: [{name: a, match: {" + match + "}, rate_limit: {unlimited: true}}]}"
}

func costRule(cost, limit string) string {
	return "domain: d\nhttp: {rules: [{name: a, cost: {" + cost + "}, rate_limit: {unit: day, " + limit + "}}]}"
}

// Each file with a mistake is refused, with file, line and rule.
func TestParse_mistakes(t *testing.T) {
	const begin, rule = "domain: d\ndescriptors:\n- key: a\n  value: b\n", "  rate_limit:\n    unit: minute\n    requests_per_unit: 1\n"
	for text, want := range map[string]string{
		"":                                                  "f.yaml:1: the file is empty",
		"[1]":                                               "f.yaml:1: this must be a mapping",
		"descriptors:":                                      "f.yaml:1: the file has no domain",
		"domain: d\nx: 1":                                   "f.yaml:2: unknown key 'x'",
		"domain: d\n<<: {x: 1}":                             "f.yaml:2: unknown key 'x'",
		"&a\ndomain: d\n<<: *a":                             "f.yaml:3: more than 32 levels",
		"domain: d\n1: 1":                                   "f.yaml:2: the key 1 isn't text",
		"domain: d\ndomain: e":                              `f.yaml:2: mapping key "domain" already defined at line 1`,
		"domain: d\ndescriptors: x":                         "f.yaml:2: cannot read !!str `x` into a list",
		"domain: d\ndescriptors:\n- x":                      "f.yaml:3: rule d.: this must be a mapping",
		"domain: d\ndescriptors:\n- value: x":               "f.yaml:3: rule d: a descriptor has no key",
		"domain: d\ndescriptors:\n- key: 1.5":               "f.yaml:3: rule d.1.5: 1.5 is a number with a fraction",
		begin + "- key: a\n  value: b\n":                    "f.yaml:5: rule d.a_b: this key and value appear twice",
		begin + "- key: a_b\n":                              "f.yaml:5: rule d.a_b: this key and value appear twice",
		begin + "  ratelimit: {}":                           "f.yaml:5: rule d.a_b: unknown key 'ratelimit'",
		begin + "  shadow_mode: 7":                          "",
		begin + "  share_threshold: true":                   "f.yaml:3: rule d.a_b: share_threshold needs a value with a '*'",
		begin + "  rate_limit: {}":                          "f.yaml:5: rule d.a_b: invalid unit ''",
		begin + "  rate_limit: {unit: foo}":                 "f.yaml:5: rule d.a_b: invalid unit 'foo'",
		begin + "  rate_limit: {unit: 15}":                  "f.yaml:5: rule d.a_b: invalid unit '15'",
		begin + "  rate_limit: {unit: 1us}":                 "f.yaml:5: rule d.a_b: invalid unit '1us'",
		begin + "  rate_limit: {unit: 99999d}":              "f.yaml:5: rule d.a_b: invalid unit '99999d'",
		begin + "  rate_limit: {unit: 24h, time_zone: UTC}": "f.yaml:5: rule d.a_b: time_zone needs",
		begin + "  rate_limit: []":                          "f.yaml:5: rule d.a_b: the list of limits is empty",
		begin + "  rate_limit: [{unit: day}]":               "f.yaml:5: rule d.a_b: each limit of a list needs a name",
		begin + "  rate_limit: [{unit: day, name: x}, {unit: hour, name: x}]":                                                          "f.yaml:5: rule d.a_b: each limit of a list needs a name of its own",
		begin + "  rate_limit: [{unit: day, name: x}, {unit: 24h, name: y}]":                                                           "f.yaml:5: rule d.a_b.y: limits of one list differ",
		begin + "  rate_limit: [{name: x, unlimited: true}]":                                                                           "f.yaml:5: rule d.a_b.x: a limit of a list has no concurrency",
		begin + "  rate_limit: [{name: x, concurrency: 1}]":                                                                            "f.yaml:5: rule d.a_b.x: a limit of a list has no concurrency",
		begin + "  rate_limit: [[{name: x}]]":                                                                                          "f.yaml:5: rule d.a_b.: this must be a mapping",
		begin + "  rate_limit: {unit: day, header: X, max: 9}":                                                                         "f.yaml:3: rule d.a_b: a header is for http rules",
		begin + "  rate_limit: {unit: day, header: X}":                                                                                 "f.yaml:5: rule d.a_b: header and max belong together",
		begin + "  rate_limit: {unit: day, max: 9}":                                                                                    "f.yaml:5: rule d.a_b: header and max belong together",
		begin + "  rate_limit: {unit: day, header: 'X Y', max: 9}":                                                                     "f.yaml:5: rule d.a_b: header and max belong together",
		begin + "  rate_limit: {unit: day, header: X, max: 9, requests_per_unit: 10}":                                                  "f.yaml:5: rule d.a_b: with a header, requests_per_unit is at most max",
		begin + "  rate_limit: {unit: day, header: X, max: 9, algorithm: gcra, burst: 1}":                                              "f.yaml:5: rule d.a_b: with a header, requests_per_unit is at most max",
		"domain: d\nhttp: {client_address: 'a b'}":                                                                                     "f.yaml:2: rule d.http: client_address is the name of a header",
		"domain: d\nhttp: {rules: [{name: a, rate_limit: [{name: b.c, unit: day}]}, {name: a.b, rate_limit: [{name: c, unit: day}]}]}": "f.yaml:2: rule d.http.a.b.c: this name is there twice",
		strings.Replace(below("", "share: 1"), "{}", "[{name: x, unit: day, requests_per_unit: 9}, {name: y, unit: hour}]", 1):         "f.yaml:6: rule d.m.t: share and reserve need a descriptor around this one that has a rate_limit, of one limit",
		begin + "  rate_limit: {unit: day, unlimited: true}":                                                                           "f.yaml:5: rule d.a_b: a rule that is unlimited has no unit",
		begin + "  rate_limit: {unit: day, requests_per_unit: -1}":                                                                     "f.yaml:5: rule d.a_b: cannot read !!int `-1` into a number from 0",
		begin + rule + "    name: me\n    replaces: [{name: me}]":                                                                      `f.yaml:9: rule d.a_b: replaces needs the name of another rule, not "me"`,
		begin + rule + "    replaces: [{}]":                                                                                            "f.yaml:8: rule d.a_b: replaces needs the name",
		begin + rule + "    burst: 5":                                                                                                  "f.yaml:6: rule d.a_b: burst and lockout need 'algorithm: gcra'",
		begin + rule + "    algorithm: lucky":                                                                                          `f.yaml:8: rule d.a_b: "lucky" is not one of [fixed_window sliding_window gcra]`,
		begin + rule + "    algorithm: gcra\n    lockout: 5":                                                                           "f.yaml:9: rule d.a_b: cannot read !!int `5` into a time",
		begin + rule + "    concurrency: 5":                                                                                            "f.yaml:6: rule d.a_b: concurrency is used alone",
		begin + rule + "    late: true\n    excess: refuse":                                                                            "f.yaml:6: rule d.a_b: 'late: true' cannot be combined",
		begin + "  rate_limit: {late: true, concurrency: 1}":                                                                           "f.yaml:5: rule d.a_b: 'late: true' cannot be combined",
		begin + rule + "    late: true\n    algorithm: gcra\n    lockout: 5m":                                                          "f.yaml:6: rule d.a_b: 'late: true' cannot be combined",
		"domain: d\nhttp: {rules: [{name: a, rate_limit: {unit: day, late: true}}]}":                                                   "f.yaml:2: rule d.http.a: late needs a cost",
		costRule("", "requests_per_unit: 9"):                                                                                           "f.yaml:2: rule d.http.a: cost needs the header",
		costRule("header: X, estimate: 10", "requests_per_unit: 9"):                                                                    "f.yaml:2: rule d.http.a: no request has room for the estimate: the limit is 9",
		costRule("header: X, estimate: 1, hold: 1us", "requests_per_unit: 9"):                                                          "f.yaml:2: rule d.http.a: hold and overdue need an estimate",
		costRule("header: X, hold: 1m", "requests_per_unit: 9"):                                                                        "f.yaml:2: rule d.http.a: hold and overdue need an estimate",
		costRule("header: X, estimate: 1, unreported: charge, overdue: ignore", "requests_per_unit: 9"):                                "f.yaml:2: rule d.http.a: hold and overdue need an estimate",
		costRule("header: X", "excess: charge"):                                                                                        "f.yaml:2: rule d.http.a: cost cannot be combined",
		begin + rule + "    hold: 5s":                                                                                                  "f.yaml:6: rule d.a_b: hold needs concurrency",
		begin + rule + "    time_zone: Local":                                                                                          `f.yaml:6: rule d.a_b: "Local" isn't a time zone`,
		begin + rule + "    time_zone: UTC\n    algorithm: gcra":                                                                       "f.yaml:6: rule d.a_b: time_zone needs",
		begin + "  rate_limit: {unit: day, time_zone: UTC, starts_on: 2}":                                                              "f.yaml:5: rule d.a_b: starts_on is 1 to 31",
		begin + "  rate_limit: {unit: month, time_zone: UTC, starts_on: 32}":                                                           "f.yaml:5: rule d.a_b: starts_on is 1 to 31",
		begin + "  rate_limit: {unit: week, time_zone: UTC}":                                                                           "f.yaml:5: rule d.a_b: time_zone needs",
		begin + rule + "    excess: charge\nhash_tag: domain":                                                                          "f.yaml:6: rule d.a_b: 'excess: charge' cannot be combined",
		begin + rule + "hash_tag: all":                                                                                                 `f.yaml:8: "all" is not one of [none domain descriptor]`,
		"domain: d\ndescriptors: &a\n- key: k\n  descriptors: *a":                                                                      "more than 32 levels",
		begin + "  share: 1": "f.yaml:3: rule d.a_b: share and reserve need a descriptor around this one",
		below("unit: day, requests_per_unit: 9", "share: 0"):                                                                                 "f.yaml:6: rule d.m.t: share is a weight of 1 to 1000",
		below("unit: day, requests_per_unit: 9", "share: 1001"):                                                                              "f.yaml:6: rule d.m.t: share is a weight of 1 to 1000",
		strings.Replace(below("unit: day, requests_per_unit: 9", "share: 1"), "descriptor", "none", 1):                                       "f.yaml:6: rule d.m.t: share needs 'hash_tag",
		below("unit: day, requests_per_unit: 9", "share: 1, reserve: 1"):                                                                     "f.yaml:6: rule d.m.t: share cannot be combined with reserve",
		below("unlimited: true", "reserve: 1"):                                                                                               "f.yaml:6: rule d.m.t: share and reserve need a limit around them",
		below("concurrency: 9", "share: 1"):                                                                                                  "f.yaml:6: rule d.m.t: share and reserve need a limit around them",
		strings.Replace(below("unit: day, requests_per_unit: 9, algorithm: gcra, lockout: 1h", "reserve: 1"), "hash_tag: descriptor", "", 1): "f.yaml:6: rule d.m.t: share and reserve need a limit around them",
		below("unit: day, requests_per_unit: 9", "reserve: 9"):                                                                               "f.yaml:6: rule d.m.t: reserve is less than the limit around it, which is 9",
		below("unit: day, requests_per_unit: 9, algorithm: gcra, burst: 2", "reserve: 2"):                                                    "f.yaml:6: rule d.m.t: reserve is less than the limit around it, which is 2",
		below("unit: day, requests_per_unit: 9", "reserve: 1, rate_limit: {unit: day}"):                                                      "f.yaml:6: rule d.m.t: reserve is kept of the limit around it",
		below("unit: day, requests_per_unit: 9", "share: 1, rate_limit: {unit: day, requests_per_unit: 9, algorithm: gcra}"):                 "f.yaml:6: rule d.m.t: the rate_limit of a share is a sliding_window or a fixed_window",
		matchRule("methods: ['*']"):                                                                                                          `no request has a method or header "*": leave methods out`,
		matchRule("headers: {'a b': x}"):                                                                                                     `no request has a method or header "a b"`,
		matchRule("host: 'http://a'"):                                                                                                        `no request has the host "http:`,
		"domain: d\nhttp: {rules: [{name: a, by: ['header:'], rate_limit: {unlimited: true}}]}":                                              `no request has a method or header ""`,
		"domain: d\nhttp: {rules: [{name: a}]}":                                                                                              "f.yaml:2: rule d.http.a: a rule needs a name and a rate_limit",
		"domain: d\nhttp: {trusted_proxies: [x]}":                                                                                            `f.yaml:2: rule d.http: "x" isn't a network`,
		"domain: d\nhttp: {rules: [{name: a, by: [foo], rate_limit: {unlimited: true}}]}":                                                    "f.yaml:2: rule d.http.a: by is a list of",
		"domain: d\n- x":            "f.yaml: yaml: line 1",
		"domain: d\n---\ndomain: e": "f.yaml:3: a file has one domain",
		"domain: d\n---\n---\n- e":  "f.yaml:4: a file has one domain",
		"domain: d\n---\n*a":        "f.yaml: yaml: unknown anchor",
		"domain: d\nhttp: {rules: [{name: a, match: {path: 'a%20b?c'}, rate_limit: {unlimited: true}}]}": "d.http.a: no request has the path a%20b?c: write /a b",
	} {
		_, err := Parse([]File{{"f.yaml", text}}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Files may share a domain if they are to be merged. A known key at the wrong place is a warning, and an anchor is read.
func TestParse_files(t *testing.T) {
	one := File{"one.yaml", "domain: d\nunit: day\ndescriptors:\n- key: a\n  rate_limit: &limit {unit: Minute, requests_per_unit: 5}\n"}
	two := File{"two.yaml", "domain: d\ndescriptors:\n- key: b\n  rate_limit: {unlimited: yes}"}
	three := File{"three.yaml", "domain: e\ndescriptors:\n- key: a\n  rate_limit: &limit {unit: week, requests_per_unit: 1_000}\n- key: b\n  rate_limit: {<<: *limit, name: x}"}
	_, err := Parse([]File{one, two}, Options{})
	require.ErrorContains(t, err, `two.yaml:1: the domain "d" is in another file, too`)
	_, err = Parse([]File{one, {"tagged.yaml", "domain: d\nhash_tag: domain"}}, Options{Merge: true})
	require.ErrorContains(t, err, "tagged.yaml:1: the hash_tag is domain, and none in another file")
	r, err := Parse([]File{one, two, three}, Options{Merge: true})
	require.NoError(t, err)
	require.Equal(t, []string{"one.yaml:2: 'unit' has no effect here"}, r.Warnings)
	var all []string
	for _, m := range r.Limits {
		all = append(all, fmt.Sprint(m.Path, " ", m.Units, " ", m.Reply.Unit, " ", m.Name))
	}
	require.Equal(t, []string{"d.a 5 MINUTE ", "d.b 0 UNKNOWN ", "e.a 1000 WEEK ", "e.b 1000 WEEK x"}, all)
	r, err = Parse([]File{{"f.yaml", "---\ndomain: d\nhttp: {rules: []}\n---\n# the end\n"}}, Options{})
	require.NoError(t, err)
	require.Contains(t, r.Warnings[0], "without trusted_proxies")
}

// A unit may be any time. Answers say it in Envoy's words.
func TestParse_units(t *testing.T) {
	for unit, want := range map[string]string{"minute": "1m0s MINUTE 0", "15m": "15m0s MINUTE 15", "36h": "36h0m0s HOUR 36", "1h30m": "1h30m0s MINUTE 90", "90d": "2160h0m0s DAY 90",
		"24h": "24h0m0s DAY 0", "90s": "1m30s SECOND 90", "1500ms": "1.5s UNKNOWN 0"} {
		r, err := Parse([]File{{"f.yaml", below("unit: "+unit+", requests_per_unit: 9", "reserve: 1")}}, Options{})
		require.NoError(t, err)
		for _, m := range r.Limits {
			require.Equal(t, want, fmt.Sprint(m.Period, " ", m.Reply.Unit, " ", m.Reply.UnitMultiplier.GetValue()))
		}
	}
}

// entries is a descriptor such as "user=bob,path=/".
func entries(text string) (d Descriptor) {
	for pair := range strings.SplitSeq(text, ",") {
		k, v, _ := strings.Cut(pair, "=")
		d = append(d, &common.RateLimitDescriptor_Entry{Key: k, Value: v})
	}
	return d
}

// The most specific rule of the descriptor's depth counts. Metrics name it as the file does, unless it asks for values.
func TestMatch(t *testing.T) {
	r, err := Parse([]File{{"f.yaml", `
domain: d
descriptors:
- {key: a, rate_limit: &l {unit: day, requests_per_unit: 1}}
- {key: a, value: b, rate_limit: *l}
- {key: a, value: b*, rate_limit: *l}
- {key: a, value: free}
- {key: w, value: x/*, share_threshold: true, rate_limit: *l, descriptors: [{key: v, detailed_metric: true, rate_limit: *l}]}
- {key: p, value: y/*, value_to_metric: true, descriptors: [{key: q, rate_limit: *l}]}
- {key: m, detailed_metric: true, rate_limit: *l}
`}}, Options{})
	require.NoError(t, err)
	for descriptor, want := range map[string]string{
		"a=zzz":                         "d.a d|a=zzz",
		"a=b":                           "d.a_b d|a=b",
		"a=bc":                          "d.a_b* d|a=bc",
		"a=free":                        " ",
		"a=b,c=d":                       " ",
		"b=b":                           " ",
		"w=x/1":                         "d.w_x/* d|w=x/*",
		"w=x/1,v=2":                     "d.w_x/*.v_2 d|w=x/*|v=2",
		"p=y/1,q=2":                     "d.p_y/1.q d|p=y/1|q=2",
		"m=7":                           "d.m_7 d|m=7",
		"a=1|b{}%":                      "d.a d|a=1%7Cb%7B%7D%25",
		"a=" + strings.Repeat("x", 300): "d.a #",
	} {
		f := r.Domains["d"].Match(entries(descriptor))
		if got := f.Label + " " + f.Key; got != want && !(strings.HasSuffix(want, "#") && strings.HasPrefix(got, want) && len(f.Key) == 44) {
			t.Errorf("%s: %s, want %s", descriptor, got, want)
		}
	}
	long := strings.Repeat("x", 300)
	require.Len(t, r.Domains["d"].Match(entries("m="+long)).Label, len("d.m_")+44)
	tagged := &Domain{name: "d", tag: tagDescriptor}
	key, _ := tagged.key(entries("u=bob,p=1"), nil)
	require.Equal(t, "{d|u=bob}|p=1", key)
	key, tag := tagged.key(entries("u="+long+",p="+long), nil)
	require.Len(t, key, 2+44+44)
	require.Len(t, tag, 2+44)
}

// A share and a reserve without a rate_limit have that of the descriptor around them.
func TestParse_nested(t *testing.T) {
	for limit, want := range map[string][2]string{
		"":                                     {"sliding_window 200 1m0s of d.m", "fixed_window 80 1m0s"},
		"algorithm: sliding_window":            {"sliding_window 200 1m0s of d.m", "sliding_window 80 1m0s"},
		"algorithm: gcra":                      {"sliding_window 200 1m0s of d.m", "gcra 100 1m0s burst 80"},
		"algorithm: gcra, burst: 30, late: on": {"sliding_window 130 18s late of d.m", "gcra 100 1m0s burst 10 late"},
	} {
		for i, nested := range []string{"share: 4", "reserve: 20"} {
			r, err := Parse([]File{{"f.yaml", below("unit: minute, requests_per_unit: 100, "+limit, nested)}}, Options{})
			require.NoError(t, err)
			f := r.Domains["d"].Match(entries("m=x,t=y"))
			got := fmt.Sprint(f.Algorithm, " ", f.Units, " ", f.Period)
			if f.Burst != nil {
				got += fmt.Sprint(" burst ", *f.Burst)
			}
			if f.Late {
				got += " late"
			}
			if f.Above != nil {
				got += " of " + f.Above.Label
				require.Equal(t, "{d|m=x} {d|m=x}|t=y 4", f.Above.Key+" "+f.Key+" "+fmt.Sprint(f.Share))
			} else {
				require.Equal(t, "{d|m=x}", f.Key)
			}
			require.Equal(t, want[i], got)
		}
	}
}

// A folder of rules may be a link, as may its files, which is how Kubernetes mounts a ConfigMap.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	_, err := Read(folder + "/none")
	require.ErrorContains(t, err, "set CONFIG")
	require.NoError(t, os.MkdirAll(folder+"/at/..1/", 0o700))
	require.NoError(t, os.WriteFile(folder+"/at/..1/a.yaml", []byte("x"), 0o600))
	for link, to := range map[string]string{"/at/..data": "..1", "/at/a.yaml": "..data/a.yaml", "/current": "at"} {
		require.NoError(t, os.Symlink(to, folder+link))
	}
	files, err := Read(folder + "/current")
	require.NoError(t, err)
	require.Equal(t, []File{{folder + "/at/a.yaml", "x"}}, files)
	require.NoError(t, syscall.Mkfifo(folder+"/at/b.yaml", 0o600))
	_, err = Read(folder)
	require.ErrorContains(t, err, "b.yaml is not a regular file")
}
