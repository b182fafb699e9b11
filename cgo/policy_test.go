package cgo_test

import (
	"fmt"
	"strings"
	"testing"
)

// The policies in force decide until the next ones are set. A wrong value leaves them in force.
func TestPolicy(t *testing.T) {
	h := loaded(t)
	set := func(value, want string) {
		t.Helper()
		if got := h.ConfigSet("gothrottle.policies", value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	wantReply(t, h, "GO.POLICY sample:k", "[0 2 1 -1 3600 1 [0 16 15 -1 3600] [0 2 1 -1 3600]]")
	set("a WINDOW 9 60s; b QUOTA 5 1d", "")
	wantReply(t, h, "GO.POLICY sample:k", "ERR no policy for the key 'sample:k'")
	wantReply(t, h, "GO.POLICY a:k 2 MS", "[0 9 7 -1 60000 0 [0 9 7 -1 60000]]")
	set("a WINDOW 99 60s; b QUOTA 5", "policy 2 (b): 'QUOTA' needs limit and period")
	wantReply(t, h, "GO.POLICY a:k", "[0 9 6 -1 60 0 [0 9 6 -1 60]]")
	wantReply(t, h, "GO.POLICY b:k", "[0 5 4 -1 86400 0 [0 5 4 -1 86400]]")
	wantReply(t, h, "GO.POLICY a:\xff\x00k 0", "[0 9 9 -1 0 0 [0 9 9 -1 0]]")
	set("", "")
	wantReply(t, h, "GO.POLICY a:k", "ERR no policy for the key 'a:k'")
	wantReply(t, h, "GO.POLICY a\x00:k", "ERR no policy for the key 'a?:k'")
}

// The server sees the key, so it never asks the module for it.
func TestPolicy_key(t *testing.T) {
	h := loaded(t)
	for _, name := range []string{"GO.POLICY", "GO.POLICY_RO"} {
		if got := strings.Join(h.Keys(name, "sample:k", "1"), " "); got != "sample:k" {
			t.Errorf("%s: keys %q", name, got)
		}
		h.ResetAPICalls()
		h.Call(name, "sample:k")
		if n := h.APICallsOf("IsKeysPositionRequest"); n != 0 {
			t.Errorf("%s asks %d times whether it is asked", name, n)
		}
	}
}

// Random calls of random policies reply what GO.ALL_RO replies to the same clauses. A replica that
// hears the effects holds the same keys. With a LOCKOUT, which GO.ALL does not have, they reply what
// GO.POLICY_RO replies.
func TestRandom_policy(t *testing.T) {
	w := newWalk(t, "t:1", "t:2", "l:1", "l:2", "w:1", "w:2", "q:1", "q:2")
	clauses := map[byte][]string{} // of each policy, as GO.ALL has them, with %d for the quantity
	for i := range rounds(10_000) {
		if i%50 == 0 {
			w.setPolicies(clauses)
		}
		w.pass(5 * second)
		key := pick(w.Rand, w.keys...)
		quantity := pick(w.Rand, 0, 1, 1, 1, 2, w.Int64N(9))
		words := []string{"GO.ALL_RO", key}
		for _, clause := range clauses[key[0]] {
			words = append(words, strings.Fields(fmt.Sprintf(clause, quantity))...)
		}
		want := w.tell([]string{"GO.POLICY_RO", key, fmt.Sprint(quantity), "MS"})
		if key[0] != 'l' {
			w.callReadOnly(want, append(words, "MS"))
		}
		w.call(want, true, "GO.POLICY", key, fmt.Sprint(quantity), "MS")
		w.reply[want[:2]]++
		if key[0] == 'l' && quantity > 0 && want[1] == '1' {
			w.reply["may lock"]++
		}
	}
	w.wantOutcomes(1000, "[0", "[1", "may lock")
}

// setPolicies makes policies of random limits whose names are the first letters of the keys.
func (w *walk) setPolicies(clauses map[byte][]string) {
	w.t.Helper()
	limit, period := 1+w.IntN(9), 1+w.IntN(60)
	text := fmt.Sprintf("w WINDOW %d 10s; q QUOTA %d %ds ALIGN 3s;", limit, limit, period)
	clauses['w'] = []string{fmt.Sprintf("WINDOW %d 10000 %%d", limit)}
	clauses['q'] = []string{fmt.Sprintf("QUOTA %d %d000 %%d ALIGN 3000", limit, period)}
	for name, lockout := range map[byte]string{'t': "", 'l': " LOCKOUT 7s"} {
		clauses[name] = nil
		var policy []string
		for range 1 + w.IntN(4) {
			burst, count, period := w.IntN(9), 1+w.IntN(7), 1+w.IntN(20)
			policy = append(policy, fmt.Sprintf("THROTTLE %d %d %ds%s", burst, count, period, lockout))
			clauses[name] = append(clauses[name], fmt.Sprintf("THROTTLE %d %d %d000 %%d", burst, count, period))
		}
		text += string(name) + " " + strings.Join(policy, ", ") + ";"
	}
	if err := w.h.ConfigSet("gothrottle.policies", text); err != "" {
		w.t.Fatalf("%q: %s", text, err)
	}
}
