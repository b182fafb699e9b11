package commands

import (
	"strconv"

	"gothrottle/funnel"
)

// GO.QUOTA key limit period [quantity] [MS] [UPTO] [ALIGN offset]

var quota = Command{
	Name:       "GO.QUOTA",
	Summary:    "Takes units from a fixed window and tells whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -4,
	Args: []Arg{argKey, argLimit, argPeriod, argQuantity, argMS, argUpTo,
		{Name: "offset", Token: "ALIGN", Type: ArgInteger, Optional: true,
			Summary: "Windows end at multiples of the period since the Unix epoch, plus this offset in the period's unit."}},
	State:   KindString,
	Handler: runQuota,
}

var quotaRO = quota.readOnly("Tells what GO.QUOTA would reply; changes nothing.")

func runQuota(c *Call) Error {
	r, err := newRequest(c.Args[2:], optMS|optUpTo|optAlign)
	if err != NoError {
		return err
	}
	limit, err := limitArg(c.Args[1])
	if err != NoError {
		return err
	}
	key := &c.Keys[0]
	state, err := quotaState(key)
	if err != NoError {
		return err
	}
	align, offset, period := r.opts&optAlign != 0, r.offset/microsecond, r.period/microsecond
	if r.opts&optUpTo != 0 {
		_, peek := funnel.Quota(c.Now, state, limit, period, 0, align, offset)
		r.quantity = upTo(r.quantity, peek.Remaining)
	}
	next, v := funnel.Quota(c.Now, state, limit, period, r.quantity, align, offset)
	switch v.Change {
	case funnel.Store:
		text := strconv.AppendInt(c.Set[:0], next.Used, 10)
		text = strconv.AppendInt(append(text, '@'), next.End, 10)
		c.SetLen = int32(len(text))
		key.expire(next.End*microsecond, r.period)
	case funnel.Forget:
		key.Remove = 1
	}
	c.reply(&v, limit, r.opts)
	return NoError
}

// quotaState reads a fixed window: a string of the units used, '@' and the window's
// end in µs since the Unix epoch, both canonical decimal.
func quotaState(key *Key) (s funnel.QuotaState, err Error) {
	switch key.Kind {
	case KindAbsent:
		return s, NoError
	case KindString:
	default:
		return s, ErrWrongType
	}
	for i := range len(key.Text) {
		if key.Text[i] != '@' {
			continue
		}
		var used, end bool
		s.Used, used = canonicalInt(key.Text[:i])
		s.End, end = canonicalInt(key.Text[i+1:])
		if used && end && s.Used >= 1 && s.Used <= maxLimit && s.End >= 1 && s.End <= maxTime {
			return s, NoError
		}
		break
	}
	return funnel.QuotaState{}, ErrForeignString
}

// canonicalInt reads an integer >= 0 without a sign or leading zeros.
func canonicalInt(s string) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n, form := parseInt(s)
	return n, form == integer
}
