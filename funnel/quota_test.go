package funnel_test

// No transcript holds what is true of random calls in any order, or of a clock that is set back.

import (
	"fmt"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/funnel/oracle"
)

// Whatever the calls, every reply and what the key holds are the exact model's.
func TestQuota_agreesWithOracle(t *testing.T) {
	seen := tally{}
	eachSchedule(t, 600, func(t *testing.T, s *schedule) {
		o := new(oracle.Quota)
		s.newPeriods, s.newLimits = s.IntN(3)*15, s.IntN(3)*10
		if s.force && s.IntN(2) == 0 {
			o = oracle.NewQuota(funnel.MaxInUse-logUniform[int64](s.Rand, s.limit), s.now+1+s.below(s.period))
			s.Put("k", &memory.Value{Kind: commands.KindString, Text: quotaText(o)})
		}
		align := s.IntN(2) == 0
		for range 100 {
			c := s.call()
			if s.oneIn(s.newLimits * 2) {
				align = !align
			}
			option := ""
			if align {
				option = fmt.Sprint("ALIGN ", int64(s.offset)/1000)
			}
			p := funnel.QuotaParams{Limit: c.Limit, Period: c.Period, Quantity: c.Quantity, UpTo: c.UpTo, Force: c.Force,
				Align: align, Offset: s.offset}
			_, before := o.State()
			v := o.Call(s.now, p)
			s.askFor(t, "GO.QUOTA", c, option, v)
			inRange(t, p.Limit, p.Quantity, p.UpTo || p.Force, v)
			promises(t, s.now, v, o.Void, func(at funnel.Micros) funnel.Verdict { return o.Clone().Call(at, p) })
			if holds := s.Get("k"); holds == nil && quotaText(o) != "" || holds != nil && holds.Text != quotaText(o) {
				t.Fatalf("%+v leaves %+v, want %s", p, holds, quotaText(o))
			}
			used, end := o.State()
			seen.count("too much", v.TooMuch)
			seen.count("debt", c.Force && used > c.Limit && v.Granted > 0)
			seen.count("denial", v.Limited)
			seen.count("partial grant", partial(c.Quantity, v))
			seen.count("refund of all", v.Change == funnel.Forget)
			seen.count("new window", v.Granted > 0 && end != before)
		}
	})
	seen.atLeast(t, 20, "too much")
	seen.atLeast(t, 500, "debt", "partial grant", "refund of all")
	seen.atLeast(t, 2000, "denial", "new window")
}

// quotaText returns what the key of a quota holds; "" if there is none.
func quotaText(o *oracle.Quota) string {
	used, end := o.State()
	if used == 0 {
		return ""
	}
	return fmt.Sprintf("%d@%019d", used, end.Nanos())
}
