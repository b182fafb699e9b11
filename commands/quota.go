package commands

import (
	"strconv"

	"gothrottle/funnel"
)

var quota = Command{
	Name:       "GO.QUOTA",
	Summary:    "Takes units from a fixed window and reports whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -4,
	Args:       []Arg{argKey, argLimit, argCalendar, argQuantity, argMS, argMode, argAlign},
	State:      KindString,
	Handler: func(c *Call) ErrorCode {
		return quotaKind.run(c, &c.scratch.rooms[0].quota, optMS|optUpTo|optForce|optRaise|optAlign)
	},
}

var quotaKind = clauseKind{
	keyword: "QUOTA",
	summary: "GO.QUOTA's limiter.",
	args:    []Arg{argLimit, argCalendar, argQuantity, argAlign, argShare},
	words:   2,
	state:   KindString,
	units:   true,
	option:  optAlign | optShare,
}

// quotaLimiter decides by a fixed window, which is a string.
type quotaLimiter struct {
	funnel.QuotaParams
	key         int
	state, next funnel.QuotaState
	v           funnel.Verdict
}

func (q *quotaLimiter) parse(args []string, r *request) (limit int64, err ErrorCode) {
	if q.Limit, err = limitArg(args[r.first]); err != NoError {
		return 0, err
	}
	r.calendar = true
	if err = r.read(args); err != NoError {
		return 0, err
	}
	q.Period, q.Months = r.period.Micros(), r.months
	q.UpTo, q.Force, q.Raise = r.opts&optUpTo != 0, r.opts&optForce != 0, r.opts&optRaise != 0
	q.Align, q.Offset = r.opts&optAlign != 0, r.offset.Micros()
	switch {
	case r.months == 0:
	case !q.Align:
		return 0, ErrMonthsWithoutAlign
	case r.offset <= -28*day || r.offset >= 31*day:
		return 0, ErrMonthsOffsetRange
	}
	return q.Limit, NoError
}

func (q *quotaLimiter) load(c *Call, key, _ int) (err ErrorCode) {
	q.key = key
	q.state, err = quotaState(&c.Keys[key])
	return err
}

func (q *quotaLimiter) judge(c *Call, quantity int64, _ bool) (*funnel.Verdict, ErrorCode) {
	q.Quantity = quantity
	if q.next, q.v = funnel.Quota(c.Now, q.state, q.QuotaParams); q.v.TooMuch {
		return nil, ErrTooMuchInUse
	}
	return &q.v, NoError
}

func (q *quotaLimiter) use(c *Call) (used, left int64, last funnel.Micros) {
	used, _, _ = q.later(c, c.Now)
	return used, max(q.Limit-used, 0), q.state.End
}

func (q *quotaLimiter) later(_ *Call, at funnel.Micros) (used int64, next funnel.Micros, err ErrorCode) {
	if at >= q.state.End {
		return 0, 0, NoError
	}
	return q.state.Used, q.state.End, NoError
}

func (q *quotaLimiter) apply(c *Call, _ bool) ErrorCode {
	k := &c.Keys[q.key]
	switch q.v.Change {
	case funnel.Store:
		k.Becomes, k.NewLen = String, putQuota(k.NewText[:0], q.next)
		k.expire(q.next.End.Nanos(), q.Period.Nanos())
	case funnel.Forget:
		k.Becomes = Absent
	}
	return NoError
}

// A fixed window is a string: the units used, '@' and the window's end in ns since the Unix epoch, in endDigits digits.
// The host reads only strings whose length lies in [MinQuotaLen, MaxQuotaLen]. An integer has at most 20 bytes, so a
// foreign counter is never read: reading would change how the server keeps it.
const (
	endDigits   = 19
	MinQuotaLen = 1 + 1 + endDigits
	MaxQuotaLen = 16 + 1 + endDigits // used has at most 16 digits
)

// putQuota writes a fixed window and returns the length of the text.
func putQuota(b []byte, s funnel.QuotaState) int32 {
	b = append(strconv.AppendInt(b, s.Used, 10), '@')
	end := s.End.Nanos()
	for n := funnel.Nanos(1e18); end < n; n /= 10 { // 19 digits, as endDigits says
		b = append(b, '0')
	}
	return int32(len(strconv.AppendInt(b, int64(end), 10)))
}

// quotaState reads a fixed window.
func quotaState(k *Key) (s funnel.QuotaState, err ErrorCode) {
	switch k.Kind {
	case KindAbsent:
		return s, NoError
	case KindString:
	default:
		return s, ErrWrongType
	}
	at := len(k.Text) - endDigits - 1
	if at < 1 || k.Text[at] != '@' {
		return s, ErrForeignString
	}
	used, ok := canonicalInt(k.Text[:at])
	if !ok || used < 1 || used > funnel.MaxInUse {
		return s, ErrForeignString
	}
	end, digits := uint64(0), k.Text[at+1:]
	for i := range len(digits) { // 19 digits fit in a uint64
		d := digits[i] - '0'
		if d > 9 {
			return s, ErrForeignString
		}
		end = end*10 + uint64(d)
	}
	micros := end / uint64(funnel.Microsecond)
	if micros*uint64(funnel.Microsecond) != end || micros < 1 || micros > uint64(maxTime) {
		return s, ErrForeignString
	}
	return funnel.QuotaState{Used: used, End: funnel.Micros(micros)}, NoError
}
