package commands

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// checkCanonical makes sure that the policies' own text is one line of the same words, and means the same policies.
func checkCanonical(t *testing.T, text string, p *Policies) {
	t.Helper()
	if want := strings.Join(strings.Fields(text), " "); p.Text() != want {
		t.Errorf("%q is shown as %q", text, p.Text())
	}
	again, err := ParsePolicies(p.Text())
	if err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("%q, read again: %+v, %v; want %+v", p.Text(), again, err, p)
	}
}

// A server puts words of its own before these errors. An operator finds the place by them.
func TestParsePolicies_errors(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, row := range []struct{ text, want string }{
		// Names.
		{";", "policy 1: the name is missing"},
		{"a QUOTA 1 1s;;", "policy 2: the name is missing"},
		{"Login QUOTA 1 1s", "policy 1: a name must be 1 to 64 of a-z 0-9 _ - . and not 'Login'"},
		{"a QUOTA 1 1s; \xff\x00 QUOTA 1 1s", "policy 2: a name must be 1 to 64 of a-z 0-9 _ - . and not '??'"},
		{long + " QUOTA 1 1s", "policy 1: a name must be 1 to 64 of a-z 0-9 _ - . and not '" + long[:64] + "'"},
		{"a QUOTA 1 1s; b QUOTA 1 1s; a QUOTA 1 1s", "policy 3 (a): policy 1 has the same name"},
		// Clauses.
		{"login", "policy 1 (login): a clause is missing"},
		{"a THROTTLE 1 1 1s,", "policy 1 (a), clause 2: a clause is missing"},
		{"a QUOTAS 1 1s", "policy 1 (a): a clause must begin with THROTTLE, WINDOW or QUOTA, not 'QUOTAS'"},
		{"a LEASE 1 1s x", "policy 1 (a): a clause must begin with THROTTLE, WINDOW or QUOTA, not 'LEASE'"},
		{"a QUOTA 1 1s, QUOTA 1 1s", "policy 1 (a), clause 2: a WINDOW or QUOTA clause must be the only one"},
		{"a THROTTLE 1 1 1s, WINDOW 1 1s", "policy 1 (a), clause 2: a WINDOW or QUOTA clause must be the only one"},
		{"a THROTTLE 0 1 1s" + strings.Repeat(", THROTTLE 0 1 1s", 32), "policy 1 (a), clause 33: at most 32 clauses"},
		// Words that are missing or too many.
		{"login QUOTA 1 1s; api THROTTLE 1 1", "policy 2 (api): 'THROTTLE' needs max_burst, count and period"},
		{"a THROTTLE 1 1 1s, THROTTLE 2", "policy 1 (a), clause 2: 'THROTTLE' needs max_burst, count and period"},
		{"a THROTTLE 1 1 1s 5", "policy 1 (a): unknown option '5': a THROTTLE clause may have LOCKOUT, and another clause needs a comma before it"},
		{"a QUOTA 1 1s b QUOTA 1 1s", "policy 1 (a): unknown option 'b': a QUOTA clause may have ALIGN, and another clause needs a comma before it"},
		{"a QUOTA 1 1s ALIGN 0s ALIGN 0s", "policy 1 (a): option 'ALIGN' given more than once"},
		{"a QUOTA 1 1s ALIGN", "policy 1 (a): ALIGN needs an offset, such as -1h or +01:00"},
		{"a THROTTLE 1 1 1s LOCKOUT, THROTTLE 1 1 1s", "policy 1 (a): LOCKOUT needs a time, such as 15m"},
		// Numbers.
		{"a THROTTLE 1 1 1s SHARE 1", "policy 1 (a): a policy cannot have SHARE: use GO.ALL"},
		{"a WINDOW 1 1s EXACT SHARE x", "policy 1 (a): a policy cannot have SHARE: use GO.ALL"},
		{"a WINDOW x 1s SHARE 1", "policy 1 (a): limit is not an integer: 'x'"},
		{"a THROTTLE x 1 1s LOCKOUT", "policy 1 (a): max_burst is not an integer: 'x'"},
		{"a QUOTA x 1s 5 ALIGN", "policy 1 (a): limit is not an integer: 'x'"},
		{"a QUOTA 1 1mo 5x ALIGN 0s", "policy 1 (a): unknown option '5x': a QUOTA clause may have ALIGN, and another clause needs a comma before it"},
		{"a THROTTLE x 1 1s", "policy 1 (a): max_burst is not an integer: 'x'"},
		{"a THROTTLE -1 1 1s", "policy 1 (a): max_burst must be between 0 and 999999999999: '-1'"},
		{"a THROTTLE 1 0 1s", "policy 1 (a): count must be between 1 and 1000000000000: '0'"},
		{"a THROTTLE 1 1 36500d", "policy 1 (a): (max_burst + 1) x period / count must not exceed 100 years: '1 1 36500d'"},
		// Times.
		{"a QUOTA 1 60", "policy 1 (a): period must be an integer with a unit, such as 250ms, 5s, 15m, 1h or 1d: '60'"},
		{"a QUOTA 1 0ms", "policy 1 (a): period must be between 1 ms and 100 years: '0ms'"},
		{"a QUOTA 1 18446744073709551617s", "policy 1 (a): period must be between 1 ms and 100 years: '18446744073709551617s'"},
		{"a THROTTLE 1 1 1s LOCKOUT 15", "policy 1 (a): the time of LOCKOUT must be an integer with a unit, such as 250ms, 5s, 15m, 1h or 1d: '15'"},
		{"a THROTTLE 1 1 1s LOCKOUT 0s", "policy 1 (a): the time of LOCKOUT must be between 1 ms and 100 years: '0s'"},
		{"a QUOTA 1 1s ALIGN 0", "policy 1 (a): offset must be a time such as -1h, or a UTC offset such as +01:00: '0'"},
		{"a QUOTA 1 1s ALIGN 36501d", "policy 1 (a): offset must be within 100 years either way: '36501d'"},
	} {
		p, err := ParsePolicies(row.text)
		if err == nil || err.Error() != row.want || p != nil {
			t.Errorf("%q: %v, %v; want\n%s", row.text, p, err, row.want)
		}
	}
}

// A megabyte: the bound of the text counts white space as well.
func TestParsePolicies_length(t *testing.T) {
	text := "a QUOTA 1 1s;" + strings.Repeat(" ", maxPolicies-len("a QUOTA 1 1s;"))
	if p, err := ParsePolicies(text); err != nil || p.Text() != "a QUOTA 1 1s;" {
		t.Errorf("at the bound: %v", err)
	}
	const want = "the text has 1048577 bytes; at most 1048576 are allowed"
	if _, err := ParsePolicies(text + " "); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// Any text is either an error of bounded length or policies that their own text says again.
func FuzzPolicies(f *testing.F) {
	for _, text := range []string{
		"",
		"login THROTTLE 4 5 300s LOCKOUT 15m; api THROTTLE 9 10 1s, THROTTLE 999 1000 1h; export QUOTA 20 1d ALIGN -1h; beta SHADOW WINDOW 100 1m",
		"a window 1 1ms exact;b quota 2 3m align 0d;",
		" b\tQUOTA 1 1s \n;\r\n a SHADOW WINDOW 1 1s ; ", "a THROTTLE 0 1 1s,THROTTLE 9 1 1h;", "shadow SHADOW QUOTA 1 1s", " \t\r\n ",
		"a THROTTLE 0 1 1s" + strings.Repeat(", THROTTLE 0 1 1s", 31),
		"a QUOTA 1 1s;;", "a QUOTA\u00a01 1s", "a:b QUOTA 1 1s", "a QUOTA 1 99999999999d", "\xff;\x00,",
	} {
		f.Add(text)
	}
	// The longest errors have a long name, a late clause and a long word. The server cuts an error's text at the bound.
	zeros, first := strings.Repeat("0", 100), ""
	for i := range 100 {
		first += fmt.Sprintf("%d QUOTA 1 1s;", i)
	}
	first += strings.Repeat("n", 64) + strings.Repeat(" THROTTLE 0 1 1s,", 31)
	for _, clause := range []string{"X" + zeros, "WINDOW x" + zeros, "THROTTLE x 1 1s", "THROTTLE 0 x" + zeros + " 1s",
		"THROTTLE " + zeros + "1 1 36500d", "THROTTLE 0 " + zeros + " 1s", "THROTTLE " + zeros + "- 1 1s",
		"THROTTLE 1 1 " + zeros, "THROTTLE 1 1 " + zeros + "s", "THROTTLE 1 1 1s LOCKOUT " + zeros,
		"THROTTLE 1 1 1s " + zeros, "QUOTA 1 1s ALIGN 9" + zeros + "d"} {
		f.Add(first + clause)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicies(text)
		if err != nil {
			if p != nil || len(err.Error()) > maxPolicyError || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q: %v, %q", text, p, err)
			}
			return
		}
		checkCanonical(t, text, p)
		for i, policy := range p.byName {
			if got := p.find(policy.name + ":x"); got != &p.byName[i] {
				t.Errorf("%q: %q is found as %v", text, policy.name, got)
			}
			if len(policy.clauses) == 0 || len(policy.clauses) > MaxClauses {
				t.Errorf("%q: %d clauses", text, len(policy.clauses))
			}
		}
	})
}
