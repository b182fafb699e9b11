package funnel_test

// No transcript holds what tenants get who share a limit: this file simulates them.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// tenant asks for units all the time.
type tenant struct {
	weight, quantity int64
	rate             float64 // how often the tenant asks, per second
	evenly           bool    // not at random

	next            float64 // when the tenant asks next, in s
	asked, admitted int64   // units
}

// shared is a THROTTLE of limit units per 10 s with a burst of limit. The tenants' own period is in s.
type shared struct {
	limit  int64
	period float64
}

// decider decides a call of a tenant.
type decider func(now funnel.Micros, tenant int, weight, quantity int64) (admitted bool)

// exact decides by the exact models.
func (s *shared) exact() decider {
	var front oracle.Throttle
	var windows [20]oracle.Window
	p := funnel.ThrottleParams{Limit: s.limit, Rate: funnel.Rate{Period: 10 * funnel.Second, Count: s.limit}}
	own := funnel.WindowParams{Limit: funnel.MaxLimit, Period: funnel.Micros(s.period * 1e6)}
	return func(now funnel.Micros, tenant int, weight, quantity int64) bool {
		peek, w := p, &windows[tenant]
		chain := []oracle.Link{
			{Limit: s.limit, InUse: func(at funnel.Nanos) int64 { return s.limit - front.Clone().Call(at, peek).Remaining }},
			{Limit: own.Limit, Weight: weight, InUse: func(at funnel.Nanos) int64 { return w.InUse(at.Micros(), own.Period) }},
		}
		if !oracle.Fits(chain, quantity, now.Nanos()) || oracle.Left(chain[:1], now.Nanos()) < quantity {
			return false
		}
		take, log := p, own
		take.Quantity, log.Quantity = quantity, quantity
		front.Call(now.Nanos(), take)
		w.Call(now, log)
		return true
	}
}

// served decides by GO.ALL in memory. If exact isn't nil, both must decide alike.
func (s *shared) served(t *testing.T, exact decider) decider {
	server := memory.NewServer()
	return func(now funnel.Micros, tenant int, weight, quantity int64) bool {
		reply, err := server.Do(now, strings.Fields(fmt.Sprintf("GO.ALL m THROTTLE %d %d 10s %d KEY %d WINDOW %d %ds %d SHARE %d",
			s.limit-1, s.limit, quantity, tenant, int64(funnel.MaxLimit), int(s.period), quantity, weight))...)
		admitted := err == nil && reply.([]any)[0] == int64(0)
		if exact != nil && exact(now, tenant, weight, quantity) != admitted {
			t.Fatalf("%d: tenant %d: %v, %v, but the exact models decide otherwise", now, tenant, reply, err)
		}
		return admitted
	}
}

// run lets tenants ask. What they get in the first of the two lengths of time doesn't count.
func (d decider) run(warm, length float64, tenants []*tenant) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, at := 0, 0.0; at < warm+length; {
		next := tenants[i]
		admitted := d(originMicros+funnel.Micros(at*1e6), i, next.weight, next.quantity)
		if at > warm {
			next.asked += next.quantity
			next.admitted += next.quantity * one(admitted)
		}
		wait := 1.0
		if !next.evenly {
			wait = r.ExpFloat64()
		}
		next.next += wait / next.rate
		for j, t := range tenants {
			if t.next < tenants[i].next {
				i = j
			}
		}
		at = tenants[i].next
	}
}

// near fails a test if a figure isn't what the contract says.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if t.Logf("%s: %.2f", what, got); math.Abs(got-want) > 0.05+0.1*want {
		t.Errorf("%s: %.2f, want %.2f", what, got, want)
	}
}

// Tenants get what the reference says. All but a polite tenant ask for more than they get.
func TestShare_table(t *testing.T) {
	for _, row := range []struct {
		shared
		weight                             int64
		tenants                            int
		lone, loud, double, evenly, random float64
	}{
		{shared{10, 10}, 1, 2, 0.89, 1.27, 1.86, 1, 0.86},
		{shared{10, 10}, 4, 10, 1, 5.4, 1.92, 0.52, 0.26},
		{shared{1000, 2}, 1, 10, 1, 1.10, 2, 1, 0.93},
		{shared{1000, 10}, 4, 10, 1, 1.06, 1.98, 1, 0.99},
		{shared{1000, 10}, 100, 10, 1, 1.61, 1.51, 0.95, 0.89},
		{shared{10_000, 10}, 1, 10, 1, 1, 2, 1, 1},
	} {
		if testing.Short() && row.period != 2 {
			continue // one row takes a second, all of them 15
		}
		rate := float64(row.limit) / 10
		length := max(4000/rate, 3*row.period)
		run := func(n int, asks float64, change func(first *tenant)) (first, of, each float64) {
			var tenants []*tenant
			for range n {
				tenants = append(tenants, &tenant{weight: row.weight, quantity: 1, rate: asks * rate / float64(n)})
			}
			change(tenants[0])
			var exact decider
			if row.limit == 10 {
				exact = row.exact()
			}
			row.served(t, exact).run(3*row.period+10, length, tenants)
			for _, other := range tenants[1:] {
				each += float64(other.admitted) / float64(n-1)
			}
			return float64(tenants[0].admitted), float64(tenants[0].asked), each
		}
		t.Logf("%+v", row.shared)
		got, _, _ := run(1, 5, func(*tenant) {})
		near(t, "lone", got/rate/length, row.lone)
		got, _, each := run(row.tenants, 2, func(first *tenant) { first.rate *= 20 })
		near(t, "loud", got/each, row.loud)
		got, _, each = run(2, 5, func(first *tenant) { first.weight *= 2 })
		near(t, "2 : 1", got/each, row.double)
		if room := rate * row.period / float64(row.weight*int64(row.tenants)); room >= 20 {
			got, _, each = run(row.tenants, 4, func(first *tenant) { first.quantity = int64(room) })
			near(t, "calls for as many units as there is room", got/each, 0.94)
		}
		for _, evenly := range []bool{true, false} {
			got, of, _ := run(row.tenants, 4, func(first *tenant) { first.rate, first.evenly = 0.8*rate/float64(row.tenants), evenly })
			near(t, "polite", got/of, map[bool]float64{true: row.evenly, false: row.random}[evenly])
		}
	}
}
