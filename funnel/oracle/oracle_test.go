package oracle

// The models are what package funnel is compared with. These tests are of what only their other users call.

import (
	"testing"

	"gothrottle/funnel"
)

const (
	start  funnel.Micros = 1_700_000_000_000_000
	second funnel.Micros = 1_000_000
)

// model is what all models can do, here with a fixed limit of 3 per 60 s.
type model struct {
	call  func(now funnel.Micros, quantity int64) funnel.Verdict
	clone func() model
	void  func(now funnel.Micros) bool
}

func throttleModel(o *Throttle) model {
	return model{
		func(now funnel.Micros, quantity int64) funnel.Verdict {
			rate := funnel.Rate{Period: 20 * funnel.Second, Count: 1}
			return o.Call(now.Nanos(), funnel.ThrottleParams{Limit: 3, Rate: rate, Quantity: quantity})
		},
		func() model { return throttleModel(o.Clone()) },
		func(now funnel.Micros) bool { return o.Void(now.Nanos()) },
	}
}

func windowModel(o *Window) model {
	return model{
		func(now funnel.Micros, quantity int64) funnel.Verdict {
			return o.Call(now, funnel.WindowParams{Limit: 3, Period: 60 * second, Quantity: quantity})
		},
		func() model { return windowModel(o.Clone()) },
		func(now funnel.Micros) bool { return o.Void(now, 60*second) },
	}
}

func quotaModel(o *Quota) model {
	return model{
		func(now funnel.Micros, quantity int64) funnel.Verdict {
			return o.Call(now, funnel.QuotaParams{Limit: 3, Period: 60 * second, Quantity: quantity})
		},
		func() model { return quotaModel(o.Clone()) },
		o.Void,
	}
}

// leaseModel takes one slot for each unit, always under new ids.
func leaseModel(o *Lease, ids int) model {
	return model{
		func(now funnel.Micros, quantity int64) (v funnel.Verdict) {
			for range quantity {
				ids++
				v = o.Call(now, string(rune('a'+ids)), funnel.LeaseParams{Limit: 3, TTL: 60 * second}).Verdict
			}
			return v
		},
		func() model { return leaseModel(o.Clone(), ids) },
		o.Void,
	}
}

func eachModel(t *testing.T, f func(*testing.T, model)) {
	t.Run("Throttle", func(t *testing.T) { f(t, throttleModel(new(Throttle))) })
	t.Run("Window", func(t *testing.T) { f(t, windowModel(new(Window))) })
	t.Run("Quota", func(t *testing.T) { f(t, quotaModel(new(Quota))) })
	t.Run("Lease", func(t *testing.T) { f(t, leaseModel(new(Lease), 0)) })
}

// A call on a copy leaves the original as it is, and the other way round.
func TestClone(t *testing.T) {
	eachModel(t, func(t *testing.T, m model) {
		m.call(start, 1)
		c := m.clone()
		if v := c.call(start, 2); v.Limited || v.Remaining != 0 {
			t.Errorf("two more on the copy: %+v", v)
		}
		if v := m.call(start, 1); v.Limited || v.Remaining != 1 {
			t.Errorf("one more on the original: %+v", v)
		}
		if v := c.call(start, 1); !v.Limited {
			t.Errorf("a fourth on the copy: %+v", v)
		}
	})
}

// A model is void at first, and again at the instant that ResetAfter returns.
func TestVoid(t *testing.T) {
	eachModel(t, func(t *testing.T, m model) {
		if !m.void(start) {
			t.Error("in use at first")
		}
		m.call(start, 1)
		v := m.call(start+5*second, 2)
		empty := start + 5*second + v.ResetAfter.Micros()
		if m.void(start+5*second) || m.void(empty-1) || !m.void(empty) {
			t.Errorf("void at: %v %v %v", m.void(start+5*second), m.void(empty-1), m.void(empty))
		}
	})
}
