package commands

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// A line that begins with "policies" sets them.
func (s *store) line(line string) string {
	s.t.Helper()
	if text, found := strings.CutPrefix(line, "policies "); found {
		s.setPolicies(text)
		return ""
	}
	return s.told(line)
}

func (s *store) lines(steps []step) {
	s.t.Helper()
	for i, step := range steps {
		s.now += funnel.Micros(step.wait) * 1000
		if got := s.line(step.line); got != step.reply && got != "["+step.reply+"]" {
			s.t.Errorf("step %d: %s: %s, want %s", i, step.line, got, step.reply)
		}
	}
}

func TestPolicy(t *testing.T) {
	for name, steps := range map[string][]step{
		"the key chooses the policy": {
			{0, "policies a THROTTLE 1 1 60s; b WINDOW 2 60s; c QUOTA 3 60s", ""},
			{0, "GO.POLICY a:k", "0 2 1 -1 60 0 [0 2 1 -1 60]"},
			{0, "GO.POLICY b:k", "0 2 1 -1 60 0 [0 2 1 -1 60]"},
			{0, "GO.POLICY c:k", "0 3 2 -1 60 0 [0 3 2 -1 60]"},
			{0, "GO.POLICY a:", "0 2 1 -1 60 0 [0 2 1 -1 60]"},
			{0, "GO.POLICY a:k:l", "0 2 1 -1 60 0 [0 2 1 -1 60]"},
			{0, "GO.POLICY d:k", "ERR no policy for the key 'd:k'"},
			{0, "GO.POLICY a", "ERR no policy for the key 'a'"},
			{0, "GO.POLICY :a", "ERR no policy for the key ':a'"},
			{0, "GO.POLICY A:k", "ERR no policy for the key 'A:k'"},
			{0, "GO.POLICY " + strings.Repeat("x", 70) + ":k", "ERR no policy for the key '" + strings.Repeat("x", 64) + "'"},
		},
		"the keys are those of the other commands": {
			{0, "policies a THROTTLE 9 10 3600s; b WINDOW 9 60s; c QUOTA 9 60s", ""},
			{0, "GO.POLICY a:k 4", "0 10 6 -1 1440 0 [0 10 6 -1 1440]"},
			{0, "GO.THROTTLE a:k 9 10 3600 0", "0 10 6 -1 1440"},
			{0, "GO.POLICY b:k 4", "0 9 5 -1 60 0 [0 9 5 -1 60]"},
			{0, "GO.WINDOW b:k 9 60 1", "0 9 4 -1 60"},
			{0, "GO.QUOTA c:k 9 60 1", "0 9 8 -1 60"},
			{0, "GO.POLICY c:k 4", "0 9 4 -1 60 0 [0 9 4 -1 60]"},
		},
		"quantities and times": {
			{0, "policies a THROTTLE 9 1 1500ms", ""},
			{0, "GO.POLICY a:k 4 MS", "0 10 6 -1 6000 0 [0 10 6 -1 6000]"},
			{1, "GO.POLICY a:k 0 ms", "0 10 6 -1 5999 0 [0 10 6 -1 5999]"},
			{0, "GO.POLICY a:k MS", "0 10 5 -1 7499 0 [0 10 5 -1 7499]"},
			{0, "GO.POLICY a:k 10", "1 10 5 8 8 0 [1 10 5 8 8]"},
			{0, "GO.POLICY a:k 11", "1 10 5 -1 8 0 [1 10 5 -1 8]"},
			{0, "GO.POLICY a:k 1000000000001", "1 10 5 -1 8 0 [1 10 5 -1 8]"},
			{0, "GO.POLICY a:k 1000000000002", "ERR quantity must be between 0 and 1000000000001"},
			{0, "GO.POLICY a:k -1", "ERR quantity must be between 0 and 1000000000001"},
			{0, "GO.POLICY a:k -99999999999999999999", "ERR quantity must be between 0 and 1000000000001"},
			{0, "GO.POLICY a:k -0", "0 10 5 -1 8 0 [0 10 5 -1 8]"},
			{0, "GO.POLICY a:k 1.5", "ERR quantity is not an integer"},
			{0, "GO.POLICY a:k MS 1", "ERR unknown option '1'"},
			{0, "GO.POLICY a:k 1 MS MS", "ERR option 'MS' given more than once"},
			{0, "GO.POLICY a:k 1 FORCE", "ERR unknown option 'FORCE'"},
			{0, "GO.POLICY a:k UPTO", "ERR unknown option 'UPTO'"},
		},
		"all of them or none": {
			{0, "policies a THROTTLE 9 10 1s, THROTTLE 4 5 3600s", ""},
			{0, "GO.POLICY a:k 3", "0 5 2 -1 2160 1 [0 10 7 -1 1] [0 5 2 -1 2160]"},
			{0, "GO.POLICY a:k 3", "1 5 2 720 2160 1 [0 10 7 -1 1] [1 5 2 720 2160]"},
			{0, "GO.POLICY a:k 2", "0 5 0 -1 3600 1 [0 10 5 -1 1] [0 5 0 -1 3600]"},
		},
		"options of a policy": {
			{0, "policies e WINDOW 200 60s EXACT; q QUOTA 5 60s ALIGN 10s; w WINDOW 200 60s", ""},
			{0, "GO.POLICY e:k", "0 200 199 -1 60 0 [0 200 199 -1 60]"},
			{1, "GO.POLICY e:k", "0 200 198 -1 60 0 [0 200 198 -1 60]"},
			{0, "GO.POLICY q:k", "0 5 4 -1 10 0 [0 5 4 -1 10]"},
		},
		"changed numbers and appended clauses lose no usage": {
			{0, "policies a THROTTLE 9 10 3600s", ""},
			{0, "GO.POLICY a:k 4", "0 10 6 -1 1440 0 [0 10 6 -1 1440]"},
			{0, "policies a THROTTLE 19 20 3600s", ""},
			{0, "GO.POLICY a:k 0", "0 20 16 -1 720 0 [0 20 16 -1 720]"},
			{0, "policies a THROTTLE 2 10 3600s, THROTTLE 0 1 60s", ""},
			{0, "GO.POLICY a:k 0", "1 3 0 360 1440 0 [1 3 0 360 1440] [0 1 1 -1 0]"},
			{0, "policies a THROTTLE 9 10 3600s, THROTTLE 0 1 60s, THROTTLE 9 1 1d", ""},
			{0, "GO.POLICY a:k 1", "0 1 0 -1 60 1 [0 10 5 -1 1800] [0 1 0 -1 60] [0 10 9 -1 86400]"},
			{0, "policies a THROTTLE 9 10 3600s; b THROTTLE 9 10 3600s", ""},
			{0, "GO.POLICY a:k 1", "0 10 4 -1 2160 0 [0 10 4 -1 2160]"},
			{0, "policies a THROTTLE 9 10 3600s, THROTTLE 0 1 60s, THROTTLE 9 1 1d", ""},
			{0, "GO.POLICY a:k 0", "0 1 0 -1 60 1 [0 10 4 -1 2160] [0 1 0 -1 60] [0 10 9 -1 86400]"},
		},
		"windows and quotas keep their usage too": {
			{0, "policies w WINDOW 5 60s; q QUOTA 5 60s", ""},
			{0, "GO.POLICY w:k 4", "0 5 1 -1 60 0 [0 5 1 -1 60]"},
			{0, "GO.POLICY q:k 4", "0 5 1 -1 60 0 [0 5 1 -1 60]"},
			{0, "policies w WINDOW 9 120s EXACT; q QUOTA 9 3600s", ""},
			{30_000, "GO.POLICY w:k 0", "0 9 5 -1 90 0 [0 9 5 -1 90]"},
			{0, "GO.POLICY q:k 0", "0 9 5 -1 30 0 [0 9 5 -1 30]"},
		},
		"a changed kind is an error": {
			{0, "policies a THROTTLE 9 10 3600s", ""},
			{0, "GO.POLICY a:k 4", "0 10 6 -1 1440 0 [0 10 6 -1 1440]"},
			{0, "policies a WINDOW 9 60s", ""},
			{0, "GO.POLICY a:k", ErrWrongType.Text()},
		},
		"GO.TOP counts what a policy denies, and not what a SHADOW would": {
			{0, "policies a QUOTA 1 60s; b SHADOW QUOTA 1 60s", ""},
			{0, "GO.POLICY a:k 2", "1 1 1 -1 0 0 [1 1 1 -1 0]"},
			{0, "GO.POLICY b:k 2", "0 1 1 -1 0 0 [1 1 1 -1 0]"},
			{0, "GO.TOP", "[[0:a:k 1 0]]"},
		},
		"a lockout begins with the denial of its own clause": {
			{0, "policies a THROTTLE 1 1 1s LOCKOUT 60s, THROTTLE 4 1 60s", ""},
			{0, "GO.POLICY a:k 2", "0 2 0 -1 2 0 [0 2 0 -1 2] [0 5 3 -1 120]"},
			{0, "GO.POLICY a:k 1", "1 2 0 60 60 0 [1 2 0 60 60] [0 5 3 -1 120]"},
			{10_000, "GO.POLICY a:k 1", "1 2 0 50 50 0 [1 2 0 50 50] [0 5 3 -1 110]"},
			{0, "GO.POLICY a:k 0", "1 2 0 50 50 0 [1 2 0 50 50] [0 5 3 -1 110]"},
			{0, "GO.THROTTLE a:k 9 1 1", "1 10 0 50 50"},
			{50_000, "GO.POLICY a:k 1", "0 2 1 -1 1 0 [0 2 1 -1 1] [0 5 3 -1 120]"},
		},
		"another clause's denial begins none": {
			{0, "policies a THROTTLE 9 1 60s LOCKOUT 1h, THROTTLE 1 1 60s", ""},
			{0, "GO.POLICY a:k 2", "0 2 0 -1 120 1 [0 10 8 -1 120] [0 2 0 -1 120]"},
			{0, "GO.POLICY a:k 1", "1 2 0 60 120 1 [0 10 8 -1 120] [1 2 0 60 120]"},
		},
		"each clause that denies begins its own": {
			{0, "policies a THROTTLE 1 1 60s LOCKOUT 90s, THROTTLE 1 1 1s LOCKOUT 80s, THROTTLE 9 1 1s LOCKOUT 70s", ""},
			{0, "GO.POLICY a:k 2", "0 2 0 -1 120 0 [0 2 0 -1 120] [0 2 0 -1 2] [0 10 8 -1 2]"},
			{0, "GO.POLICY a:k 1", "1 2 0 90 120 0 [1 2 0 90 120] [1 2 0 80 80] [0 10 8 -1 2]"},
			{80_000, "GO.POLICY a:k 0", "1 2 0 10 40 0 [1 2 0 10 40] [0 2 2 -1 0] [0 10 10 -1 0]"},
			{0, "GO.THROTTLE a:k 1 1 1 0", "1 2 0 10 10"},
		},
		"a denial of all by a cell that stands alone": {
			{0, "policies a THROTTLE 9 1 1s, THROTTLE 0 1 1h LOCKOUT 5s", ""},
			{0, "GO.POLICY a:k", "0 1 0 -1 3600 1 [0 10 9 -1 1] [0 1 0 -1 3600]"},
			{5000, "GO.POLICY a:k", "1 1 0 3595 3595 1 [0 10 10 -1 0] [1 1 0 3595 3595]"},
			{0, "GO.POLICY a:k 0", "1 1 0 5 3595 1 [0 10 10 -1 0] [1 1 0 5 3595]"},
		},
		"no lockout begins if a clause can never admit": {
			{0, "policies a THROTTLE 2 1 1h LOCKOUT 9h, THROTTLE 1 1 1ms LOCKOUT 9h", ""},
			{0, "GO.POLICY a:k 2", "0 2 0 -1 1 1 [0 3 1 -1 7200] [0 2 0 -1 1]"},
			{1000, "GO.POLICY a:k 3", "1 2 2 -1 0 1 [1 3 1 7199 7199] [1 2 2 -1 0]"},
			{0, "GO.POLICY a:k 4", "1 3 1 -1 7199 0 [1 3 1 -1 7199] [1 2 2 -1 0]"},
			{0, "GO.POLICY a:k 0", "0 3 1 -1 7199 0 [0 3 1 -1 7199] [0 2 2 -1 0]"},
			{0, "GO.POLICY a:k 2", "1 3 0 32400 32400 0 [1 3 0 32400 32400] [0 2 2 -1 0]"},
		},
	} {
		t.Run(name, func(t *testing.T) { newStore(t).lines(steps) })
	}
}

// The reply of a SHADOW tells admission in front and the truth behind, and the keys become what they
// become without SHADOW.
func TestPolicy_shadow(t *testing.T) {
	const clauses = "THROTTLE 1 1 60s LOCKOUT 90s, THROTTLE 4 5 1h"
	real, shadow := newStore(t), newStore(t)
	for i, row := range []struct {
		quantity      int64
		real          string
		shadow        string
		told, counted Outcome // without and with SHADOW
	}{
		{2, "[0 2 0 -1 120 0 [0 2 0 -1 120] [0 5 3 -1 1440]]", "[0 2 0 -1 120 0 [0 2 0 -1 120] [0 5 3 -1 1440]]", Admitted, Admitted},
		{0, "[0 2 0 -1 120 0 [0 2 0 -1 120] [0 5 3 -1 1440]]", "[0 2 0 -1 120 0 [0 2 0 -1 120] [0 5 3 -1 1440]]", Other, Other},
		{9, "[1 2 0 -1 120 0 [1 2 0 -1 120] [1 5 3 -1 1440]]", "[0 2 0 -1 120 0 [1 2 0 -1 120] [1 5 3 -1 1440]]", Limited, Shadowed},
		{1, "[1 2 0 90 120 0 [1 2 0 90 120] [0 5 3 -1 1440]]", "[0 2 0 -1 120 0 [1 2 0 90 120] [0 5 3 -1 1440]]", Limited, Shadowed},
		{0, "[1 2 0 90 120 0 [1 2 0 90 120] [0 5 3 -1 1440]]", "[0 2 0 -1 120 0 [1 2 0 90 120] [0 5 3 -1 1440]]", Other, Other},
	} {
		for _, side := range []struct {
			s       *store
			value   string
			reply   string
			outcome Outcome
		}{{real, "a " + clauses, row.real, row.told}, {shadow, "a SHADOW " + clauses, row.shadow, row.counted}} {
			TheHost = side.s
			side.s.setPolicies(side.value)
			words := []string{"GO.POLICY", "a:k", fmt.Sprint(row.quantity)}
			twin := side.s.told("GO.POLICY_RO a:k " + words[2])
			c, err := side.s.run(words...)
			if got := replyText(c, err); got != side.reply || twin != got || c.Outcome != side.outcome {
				t.Errorf("call %d, %s: %s, outcome %d, twin %s; want %s, %d", i, side.value, got, c.Outcome, twin, side.reply, side.outcome)
			}
		}
		if a, b := real.dump(), shadow.dump(); a != b {
			t.Errorf("call %d: the keys are\n%s\nwith SHADOW\n%s", i, a, b)
		}
	}
	if got := shadow.told("GO.POLICY a:k 1x"); got != ErrQuantityNotInteger.Text() {
		t.Errorf("an error of a SHADOW: %s", got)
	}
}

// Random calls of random policies of THROTTLE clauses do what a model does: a state for each cell,
// which package funnel changes.
func TestPolicy_model(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := newStore(t)
		var cells [4]funnel.ThrottleState
		var p Policy
		for i := range 80 {
			if i == 0 || r.IntN(10) == 0 {
				p = s.randomPolicy(r)
			}
			s.now += funnel.Micros(r.Int64N(4) * r.Int64N(2_000_000))
			quantity := r.Int64N(6)
			call := fmt.Sprintf("GO.POLICY p:k %d MS", quantity)
			want := modelPolicy(&cells, &p, s.now.Nanos(), quantity)
			if got := s.told(call); got != want {
				t.Fatalf("seed %d, call %d, %s of %s: %s, want %s", seed, i, call, policies.Text(), got, want)
			}
			if v := s.keys["p:k"]; v != nil {
				s.checkCells(v, &cells)
			} else {
				for j, cell := range cells {
					if !cell.Void(s.now.Nanos()) {
						t.Fatalf("seed %d, call %d: there is no key, but cell %d is %+v", seed, i, j, cell)
					}
				}
			}
		}
	}
}

// randomPolicy sets and returns a policy named p, mostly with parameters that interfere.
func (s *store) randomPolicy(r *rand.Rand) Policy {
	text := "p"
	if r.IntN(4) == 0 {
		text += " SHADOW"
	}
	for i := range 1 + r.IntN(4) {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" THROTTLE %d %d %dms", r.IntN(5), 1+r.IntN(3), 1+r.IntN(4000))
		if r.IntN(2) == 0 {
			text += fmt.Sprintf(" LOCKOUT %dms", 1+r.IntN(6000))
		}
	}
	s.setPolicies(text)
	return policies.byName[0]
}

// modelPolicy decides by the model, and returns the reply.
func modelPolicy(cells *[4]funnel.ThrottleState, p *Policy, now funnel.Nanos, quantity int64) string {
	limited, never := false, false
	for _, clause := range p.clauses {
		never = never || quantity > clause.throttle.Limit
	}
	var next [4]funnel.ThrottleState
	var verdicts [4]funnel.Verdict
	for i, clause := range p.clauses {
		params := clause.throttle.ThrottleParams
		if params.Quantity = quantity; never {
			params.Lockout = 0
		}
		next[i], verdicts[i] = funnel.Throttle(now, cells[i], &params)
		limited = limited || verdicts[i].Limited
	}
	inner, deciding, decider := "", [5]int64{}, -1
	for i, clause := range p.clauses {
		v := verdicts[i]
		if limited && !v.Limited { // what is left
			params := clause.throttle.ThrottleParams
			params.Quantity = 0
			next[i], v = funnel.Throttle(now, cells[i], &params)
			v.Limited, v.RetryAfter = false, 0
		}
		if v.Change != funnel.Keep {
			cells[i] = next[i]
		}
		var reply [6]int64
		putReply(&reply, &v, clause.throttle.Limit, funnel.Millisecond)
		inner += fmt.Sprintf(" %d", reply[:5])
		if five := [5]int64(reply[:5]); decider < 0 || decides(five, deciding) {
			deciding, decider = five, i
		}
	}
	if p.shadow {
		deciding[0], deciding[3] = 0, -1
	}
	return fmt.Sprintf("[%s %d%s]", strings.Trim(fmt.Sprint(deciding), "[]"), decider, inner)
}

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

// checkCells compares what the key holds with the model.
func (s *store) checkCells(v *value, cells *[4]funnel.ThrottleState) {
	s.t.Helper()
	for i := range cells {
		cell := v.cell(int32(i))
		if cell.Found != 0 {
			cell.decode(0)
		}
		now := s.now.Nanos()
		if got, want := cell.state, cells[i]; got.Void(now) != want.Void(now) || !want.Void(now) && (max(got.TAT, now) != max(want.TAT, now) ||
			max(got.Locked, now) != max(want.Locked, now)) {
			s.t.Fatalf("cell %d is %+v, the model's is %+v", i, got, want)
		}
	}
}
