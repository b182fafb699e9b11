package main

import (
	"fmt"
	"strings"

	"gothrottle/funnel"
)

// integers returns the integers of a clause's reply.
func integers(cl *clause, d *decision, v *funnel.Verdict, unit funnel.Nanos) []int64 {
	limited, retry := int64(0), int64(-1)
	if v.Limited {
		limited = 1
	}
	if v.RetryAfter > 0 {
		retry = inUnits(v.RetryAfter, unit)
	}
	all := []int64{limited, cl.limit(), v.Remaining, retry, inUnits(v.ResetAfter, unit)}
	if cl.kind == 'l' {
		all = append(all, d.renewed)
	}
	return all
}

// inUnits rounds up.
func inUnits(t, unit funnel.Nanos) int64 {
	n, rest := t/unit, t%unit
	return int64(n + min(rest, 1))
}

func (m *model) settleOne(c *call, d *decision) string {
	reply := integers(&c.clauses[0], d, &d.v, c.unit)
	switch {
	case c.sixth == "UPTO":
		reply = append(reply, d.v.Granted)
	case c.sixth == "RESERVE" && d.v.Limited:
		reply = append(reply, -1)
	case c.sixth == "RESERVE":
		reply = append(reply, inUnits(d.v.Wait, c.unit))
	}
	d.take()
	return fmt.Sprint(reply)
}

// settleAll settles a call of several clauses and returns its reply.
func (m *model) settleAll(c *call, all []decision) string {
	limited := false
	for i := range all {
		limited = limited || all[i].v.Limited
	}
	inner := make([][]int64, len(all))
	for i := range all {
		v := all[i].v
		if limited && !v.Limited {
			v = all[i].peek()
			v.Limited, v.RetryAfter = false, 0
		}
		inner[i] = integers(&c.clauses[i], &all[i], &v, c.unit)
	}
	for i := range all {
		if !limited || all[i].v.Limited {
			all[i].take()
		}
	}
	decider := deciderOf(all, c.unit)
	front := append([]int64{}, inner[decider][:5]...)
	if c.shadow {
		front[0], front[3] = 0, -1
	}
	five := strings.Trim(fmt.Sprint(front), "[]")
	return fmt.Sprintf("[%s %d %s", five, decider, fmt.Sprint(inner)[1:])
}

// deciderOf returns the clause that decides: the limited one with the longest wait, or if none is
// limited, the one with the least remaining.
func deciderOf(all []decision, unit funnel.Nanos) (decider int) {
	longer := func(a, b *funnel.Verdict) bool {
		if a.RetryAfter == funnel.Never || b.RetryAfter == funnel.Never {
			return b.RetryAfter != funnel.Never
		}
		return inUnits(a.RetryAfter, unit) > inUnits(b.RetryAfter, unit)
	}
	for i := range all {
		v, best := &all[i].v, &all[decider].v
		switch {
		case v.Limited && (!best.Limited || longer(v, best)):
			decider = i
		case !v.Limited && !best.Limited && v.Remaining < best.Remaining:
			decider = i
		}
	}
	return decider
}
