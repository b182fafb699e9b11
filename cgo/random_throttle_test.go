package cgo_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/funnel"
)

// model is what a key must hold: a state of package funnel and an expiry.
type model struct {
	state   funnel.State
	expire  int64 // ms; NoExpiry after a user's PERSIST
	adopted bool  // the key is still redis-cell's string
}

func (m *model) fields() map[string]string { return hashFields(0, m.state) }

// Random calls of GO.THROTTLE on a few keys, through all of the module, give the same replies and
// hashes as package funnel alone. A replica that hears the effects holds the same keys.
func TestRandom_throttle(t *testing.T) {
	calls := rounds(30_000)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	h := loaded(t)
	keys := []string{"a", "b", "c", "d", "e", "f"}
	models, other := map[string]*model{}, replica{}
	admitted, limited, removed := 0, 0, 0
	for i := range calls {
		h.Advance(pick(r, 0, 0, 1, r.Int64N(1000), r.Int64N(second), r.Int64N(20*second)))
		key := pick(r, keys...)
		meddle(r, h, key, models, other)

		limit := pick(r, 1, 2, 3, 16, 1+r.Int64N(1000))
		count := pick(r, 1, 7, 30, 30, 30, 60, 1+r.Int64N(1000))
		period := pick[int64](r, 1, 60, 60, 60, 3600)
		unit, option := int64(1_000_000_000), []string{}
		if r.IntN(3) == 0 {
			unit, option = 1_000_000, []string{"ms"}
			period = pick[int64](r, 1, 1000, 60_000)
		}
		quantity := pick(r, 1, 1, 1, 1, 0, 2, 5, limit, limit+1, -1, -2, -r.Int64N(1000))
		words := append([]string{"GO.THROTTLE", key, fmt.Sprint(limit - 1), fmt.Sprint(count), fmt.Sprint(period), fmt.Sprint(quantity)}, option...)

		// The server removes a key that has expired, whatever the call does.
		m, now := models[key], h.Now()*1000
		expired := m != nil && m.expire != fakehost.NoExpiry && h.Now()/1000 > m.expire
		if expired {
			m = nil
			delete(models, key)
		}
		was := funnel.State{}
		if m != nil {
			was = m.state
		}
		rate := funnel.Rate{Count: count, Period: period * unit}
		next, v := funnel.Throttle(now, was, limit, rate, quantity)
		want := fakehost.Reply{Array: []fakehost.Reply{{Int: 0}, {Int: limit}, {Int: v.Remaining},
			{Int: roundUp(v.RetryAfter, unit)}, {Int: roundUp(v.ResetAfter, unit)}}}
		if v.Limited {
			want.Array[0].Int = 1
			limited++
		} else {
			admitted++
		}
		switch {
		case v.Change == funnel.Forget:
			delete(models, key)
			removed++
		case v.Change == funnel.Store:
			if m == nil || m.adopted {
				m = &model{expire: fakehost.NoExpiry}
				models[key] = m
			}
			m.state = next
			m.settle(limit, rate)
		}

		got := h.Call(words...)
		what := fmt.Sprintf("seed %d, call %d: %q", seed, i, words)
		if got.String() != want.String() {
			t.Fatalf("%s: reply %v, want %v; state was %+v", what, got, want, was)
		}
		if v.Change == funnel.Keep && !expired {
			if h.Effects() != nil {
				t.Errorf("%s: nothing changed, but %q", what, h.Effects())
			}
		}
		for _, key := range keys {
			compare(t, h, what, key, models[key])
		}
		other.follow(t, h, what, keys...)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d admitted, %d limited, %d keys removed", admitted, limited, removed)
	if admitted < calls/4 || limited < calls/50 || removed < calls/100 {
		t.Errorf("too one-sided: %d admitted, %d limited, %d keys removed", admitted, limited, removed)
	}
}

// meddle changes a key as a user might between two calls.
func meddle(r *rand.Rand, h *fakehost.Host, key string, models map[string]*model, other replica) {
	m := models[key]
	switch r.IntN(40) {
	case 0:
		at := h.Now()*1000 + r.Int64N(40_000_000_000)
		models[key] = &model{state: funnel.State{TAT: at}, expire: fakehost.NoExpiry, adopted: true}
		h.PutString(key, strconv.FormatInt(at, 10))
		other[key] = &replicaKey{text: strconv.FormatInt(at, 10), expire: fakehost.NoExpiry}
	case 1:
		h.Delete(key)
		delete(models, key)
		delete(other, key)
	case 2, 3:
		if m != nil {
			m.expire = pick(r, fakehost.NoExpiry, h.Now()/1000+r.Int64N(20_000))
			h.Expire(key, m.expire)
			other[key].expire = m.expire
		}
	}
}

// settle sets the expiry that a stored state gets. An expiry stays if it is neither before the end
// of the state nor later than the slack allows.
func (m *model) settle(limit int64, rate funnel.Rate) {
	end := m.state.TAT
	if m.state.Frac > 0 {
		end++
	}
	from := roundUp(end, 1_000_000)
	to := from + max(1000, min(rate.Drain(limit), rate.Period)/4/1_000_000)
	if m.expire < from || m.expire > to {
		m.expire = to
	}
}

func compare(t *testing.T, h *fakehost.Host, what, key string, m *model) {
	t.Helper()
	switch {
	case m == nil:
		if got := h.TypeOf(key); got != "none" {
			t.Errorf("%s: %s is a %s, must be gone", what, key, got)
		}
	case m.adopted:
		if got := h.StringOf(key); got != fmt.Sprint(m.state.TAT) || h.ExpireOf(key) != m.expire {
			t.Errorf("%s: %s holds %q", what, key, got)
		}
	default:
		if got := h.HashOf(key); fmt.Sprint(got) != fmt.Sprint(m.fields()) || h.ExpireOf(key) != m.expire {
			t.Errorf("%s: %s holds %v until %d, want %v until %d", what, key, got, h.ExpireOf(key), m.fields(), m.expire)
		}
	}
}
