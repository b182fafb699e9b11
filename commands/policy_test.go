package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// policyModel is what a key of a policy of THROTTLE clauses holds, and the policy.
type policyModel struct {
	cells   [4]funnel.ThrottleState
	shadow  bool
	clauses []funnel.ThrottleParams
}

// Random calls of random policies, more than a transcript can have, do what a model does: a state for each cell, which
// package funnel changes.
func TestPolicy_model(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		server, m, now := memory.NewServer(), policyModel{}, funnel.Micros(corpus.Epoch)
		for i := range 80 {
			if i == 0 || r.IntN(10) == 0 {
				if err := server.SetPolicies(m.draw(r)); err != nil {
					t.Fatal(err)
				}
			}
			now += funnel.Micros(r.Int64N(4) * r.Int64N(2_000_000))
			quantity := r.Int64N(6)
			reply, _ := server.Do(now, "GO.POLICY", "p:k", fmt.Sprint(quantity), "MS")
			if got, want := fmt.Sprint(reply), m.call(now.Nanos(), quantity); got != want {
				t.Fatalf("seed %d, call %d, %d of %+v: %s, want %s", seed, i, quantity, m, got, want)
			}
		}
	}
}

// draw draws a policy named p, mostly with parameters that interfere, and returns its text.
func (m *policyModel) draw(r *rand.Rand) string {
	m.clauses, m.shadow = nil, r.IntN(4) == 0
	text := map[bool]string{true: "p SHADOW", false: "p"}[m.shadow]
	for i := range 1 + r.IntN(4) {
		burst, count, millis, lockout := r.Int64N(5), 1+r.Int64N(3), 1+r.Int64N(4000), r.Int64N(2)*(1+r.Int64N(6000))
		text += map[bool]string{true: ",", false: ""}[i > 0] + fmt.Sprintf(" THROTTLE %d %d %dms", burst, count, millis)
		if lockout > 0 {
			text += fmt.Sprintf(" LOCKOUT %dms", lockout)
		}
		rate := funnel.Rate{Period: funnel.Nanos(millis) * funnel.Millisecond, Count: count}
		m.clauses = append(m.clauses, funnel.ThrottleParams{Limit: burst + 1, Rate: rate, Lockout: funnel.Nanos(lockout) * funnel.Millisecond})
	}
	return text
}

// call decides by the model, and returns the reply.
func (m *policyModel) call(now funnel.Nanos, quantity int64) string {
	limited, never := false, false
	for _, p := range m.clauses {
		never = never || quantity > p.Limit
	}
	var next [4]funnel.ThrottleState
	var verdicts [4]funnel.Verdict
	for i, p := range m.clauses {
		if p.Quantity = quantity; never {
			p.Lockout = 0
		}
		next[i], verdicts[i] = funnel.Throttle(now, m.cells[i], &p)
		limited = limited || verdicts[i].Limited
	}
	inner, front, decider := "", [5]int64{}, -1
	for i, p := range m.clauses {
		v := verdicts[i]
		if limited && !v.Limited { // what is left
			p.Quantity = 0
			next[i], v = funnel.Throttle(now, m.cells[i], &p)
			v.Limited, v.RetryAfter = false, 0
		}
		if v.Change != funnel.Keep {
			m.cells[i] = next[i]
		}
		five := [5]int64{0, p.Limit, v.Remaining, -1, millisUp(v.ResetAfter)}
		if v.Limited {
			five[0] = 1
		}
		if v.RetryAfter > 0 {
			five[3] = millisUp(v.RetryAfter)
		}
		inner += fmt.Sprint(" ", five)
		if decider < 0 || decides(five, front) {
			front, decider = five, i
		}
	}
	if m.shadow {
		front[0], front[3] = 0, -1
	}
	return fmt.Sprintf("[%s %d%s]", strings.Trim(fmt.Sprint(front), "[]"), decider, inner)
}

func millisUp(t funnel.Nanos) int64 { return int64((t + funnel.Millisecond - 1) / funnel.Millisecond) }

// decides reports whether clause a decides rather than b, which stands before it.
func decides(a, b [5]int64) bool {
	switch {
	case a[0] != b[0]:
		return a[0] == 1
	case a[0] == 0:
		return a[2] < b[2]
	case b[3] < 0: // never
		return false
	}
	return a[3] < 0 || a[3] > b[3]
}
