package funnel_test

// No transcript has what Coq says: it runs the step of proofs/gcra.v on the calls that funnel has decided.

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// agrees compares a call of funnel with gcra.v's step: the state after it, the units granted, which funnel rounds away from 0,
// and retry_after. The rate of a state with nothing in use doesn't count.
const agrees = `From Proofs Require Import gcra.
Require Import QArith Qround List Bool.
Definition agrees '(L, r, t, s, c, s1, granted, retry) :=
  let (s2, g) := step L r t s c in
  let whole := if Qle_bool 0 g then Qceiling g else Qfloor g in
  let after := match c with
    | Take n => if (L <? n)%Z then (-1)%Z else if (whole <? n)%Z then wait L s2 n else 0%Z
    | UpTo n => if (whole <? n)%Z then wait L s2 1 else 0%Z
    | _ => 0%Z end in
  Qeq_bool (used s1) (used s2) && (Qeq_bool (used s1) 0 || Qeq_bool (own s1) (own s2)) &&
  Z.eqb whole granted && Z.eqb after retry.
Definition calls : list (Z * Q * Q * state * call * state * Z * Z) :=
`

func TestThrottle_proof(t *testing.T) {
	dir := os.Getenv("GOTHROTTLE_PROOFS")
	if dir == "" {
		t.Skip("make test-proofs runs it, with Coq")
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var text strings.Builder
	text.WriteString(agrees)
	for range 40 {
		proveCalls(r, &text)
	}
	text.WriteString("nil.\nCompute find (fun x => negb (agrees x)) calls.\n")
	file := filepath.Join(dir, "calls.v")
	if err := os.WriteFile(file, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("coqc", "-R", dir, "Proofs", file).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "     = None\n") {
		t.Fatalf("%v: the first call that differs, as in gcra.v, with funnel's state, grant and retry_after:\n%s", err, out)
	}
}

// proveCalls writes random calls for one limiter.
func proveCalls(r *rand.Rand, text *strings.Builder) {
	rates := []funnel.Rate{{60e9, 7}, {logUniform(r, funnel.Nanos(1e12)), logUniform(r, int64(1e6))}, {1e9, 1 + r.Int64N(3)}}
	limit, s, now := logUniform(r, int64(1e4)), funnel.ThrottleState{}, origin
	for range 25 {
		p := funnel.ThrottleParams{Limit: limit + r.Int64N(3), Rate: rates[r.IntN(3)], Quantity: logUniform(r, limit+3)}
		name, passed := "Take", funnel.Nanos(r.Float64()*float64(p.Rate.Drain(logUniform(r, limit))))
		switch r.IntN(10) {
		case 0:
			name, p.Force = "Force", true
		case 1:
			name, p.Raise = "Raise", true
		case 2, 3:
			name, p.UpTo = "UpTo", true
		case 4, 5:
			name = "Refund"
		}
		asked := p.Quantity
		if name == "Refund" {
			p.Quantity = -asked
		}
		next, v := funnel.Throttle(now+passed, s, &p)
		fmt.Fprintf(text, "(%d%%Z, %s, %d#1, %s, %s %d, ", p.Limit, quotient(perNano(p.Rate)), passed, inCoq(s, now), name, asked)
		if now += passed; v.Change != funnel.Keep {
			s = next
		}
		fmt.Fprintf(text, "%s, (%d)%%Z, (%d)%%Z) ::\n", inCoq(s, now), v.Granted, v.RetryAfter)
	}
}

// inCoq returns a state as gcra.v has it.
func inCoq(s funnel.ThrottleState, now funnel.Nanos) string {
	empty, rate := limiterOf(s).oracle.State()
	left := empty.Sub(empty, whole(now))
	if left.Sign() <= 0 {
		return "{| used := 0; own := 1 |}"
	}
	return fmt.Sprintf("{| used := %s; own := %s |}", quotient(left.Mul(left, perNano(rate))), quotient(perNano(rate)))
}

func quotient(x *big.Rat) string { return fmt.Sprintf("%d#%d", x.Num(), x.Denom()) }
