package cgo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/funnel"
)

// fewer divides the number of random calls. It is more than 1 in builds where calls are slow.
var fewer = 1

// rounds returns the number of random calls of a test: n, or fewer in short runs and slow builds.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n / fewer
}

// walk is a random walk: a server, a replica that hears the server's effects, and a model of the
// module's clock while the server's clock is set forward and back.
type walk struct {
	*rand.Rand
	t     *testing.T
	h     *fakehost.Host
	seed  uint64
	calls int
	clock funnel.Clock
	mono  funnel.Micros
	now   funnel.Micros // what the module's clock must say
	other replica
	keys  []string
	reply map[string]int // how often each outcome was seen
}

func newWalk(t *testing.T, keys ...string) *walk {
	seed := rand.Uint64()
	return &walk{Rand: rand.New(rand.NewPCG(seed, 0)), seed: seed, t: t, h: loaded(t), other: replica{}, keys: keys, reply: map[string]int{}}
}

// pass lets less than most µs pass. Once in 100 calls it also sets the server's clock.
func (w *walk) pass(most int64) {
	micros := pick(w.Rand, 0, 0, 1, w.Int64N(1000), w.Int64N(most/100+1), w.Int64N(most))
	w.h.Advance(micros)
	w.mono += funnel.Micros(micros)
	switch w.IntN(200) {
	case 0:
		w.h.SetNow(w.h.Now() - w.Int64N(most))
	case 1:
		w.h.SetNow(w.h.Now() + w.Int64N(most))
	}
	w.now = w.clock.Now(funnel.Micros(w.h.Now()), func() funnel.Micros { return w.mono })
}

// gone tells whether the expiry of a key is past. The server then removes the key.
func (w *walk) gone(key string) bool {
	at := w.h.ExpireOf(key)
	return at != fakehost.NoExpiry && w.h.Now()/1000 > at
}

// call makes a call and checks its reply. If changes is false, the call must change nothing.
func (w *walk) call(want string, changes bool, words ...string) {
	w.t.Helper()
	w.calls++
	what := fmt.Sprintf("seed %d, call %d: %q at %d", w.seed, w.calls, words, w.now)
	before := w.h.Dump()
	expired := false
	for _, key := range w.keys {
		expired = expired || w.gone(key)
	}
	if got := w.h.Call(words...).String(); got != want {
		w.t.Fatalf("%s: reply %s, want %s; it was %q", what, got, want, before)
	}
	if !changes && !expired {
		wantNothing(w.t, w.h, what, before)
	}
	w.other.follow(w.t, w.h, what, w.keys...)
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// wantExpiry checks that a key's expiry is not before end and at most slack, or a second, later.
func (w *walk) wantExpiry(key string, end, slack funnel.Micros) {
	w.t.Helper()
	from := roundUp(end, 1000)
	if at := w.h.ExpireOf(key); at < int64(from) || at > int64(from+max(second, slack)/1000) {
		w.t.Fatalf("seed %d, call %d: %s expires at %d, in use until %d, slack %d ms", w.seed, w.calls, key, at, from, slack/1000)
	}
}

// wantOutcomes checks that each outcome was seen about least times or more.
func (w *walk) wantOutcomes(least int, outcomes ...string) {
	w.t.Logf("%v", w.reply)
	for _, o := range outcomes {
		if w.reply[o] < rounds(least)/4 {
			w.t.Errorf("seed %d: only %d of %d calls were %s", w.seed, w.reply[o], w.calls, o)
		}
	}
}

// unitOf returns the unit of time of a call, and the option that asks for it.
func (w *walk) unitOf() (unit funnel.Nanos, option []string) {
	if w.IntN(4) == 0 {
		return funnel.Millisecond, []string{pick(w.Rand, "MS", "ms")}
	}
	return funnel.Second, nil
}

// told returns a verdict as the five integers of a reply.
func told(v *funnel.Verdict, limit int64, unit funnel.Nanos) []int64 {
	limited, retry := int64(0), int64(-1)
	if v.Limited {
		limited = 1
	}
	if v.RetryAfter > 0 {
		retry = int64(roundUp(v.RetryAfter, unit))
	}
	return []int64{limited, limit, v.Remaining, retry, int64(roundUp(v.ResetAfter, unit))}
}

// upToOrForce gives a call UPTO or FORCE, or neither, and returns its word. Now and then a forced
// call has the largest quantity.
func (w *walk) upToOrForce(upTo, force *bool, quantity *int64) []string {
	switch w.IntN(12) {
	case 0, 1:
		*upTo = true
		return []string{"UPTO"}
	case 2, 3:
		*force = true
		if w.IntN(300) == 0 {
			*quantity = funnel.MaxLimit
		}
		return []string{"FORCE"}
	}
	return nil
}

// windowReply returns the reply of GO.WINDOW or GO.QUOTA.
func windowReply(v *funnel.Verdict, limit int64, upTo bool, unit funnel.Nanos) string {
	if v.TooMuch {
		return commands.ErrTooMuchInUse.Text()
	}
	want := told(v, limit, unit)
	if upTo {
		want = append(want, v.Granted)
	}
	return integers(want...)
}

// outcome counts how a call ended.
func (w *walk) outcome(v *funnel.Verdict) {
	switch {
	case v.TooMuch:
		w.reply["too much"]++
	case v.Limited:
		w.reply["limited"]++
	case v.Change == funnel.Forget:
		w.reply["removed"]++
	case v.Granted < 0:
		w.reply["given back"]++
	default:
		w.reply["admitted"]++
	}
}

// integers returns a reply of integers as text.
func integers(n ...int64) string { return fmt.Sprint(n) }

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// roundUp returns n/unit, rounded up. n is not negative.
func roundUp[N ~int64](n, unit N) N { return n/unit + min(1, n%unit) }
