package commands

import (
	"strconv"

	"gothrottle/funnel"
)

var quota = Command{
	Name:       "GO.QUOTA",
	Summary:    "Takes units from a fixed window and tells whether they were admitted.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      writeFast,
	Arity:      -4,
	Args:       []Arg{argKey, argLimit, argPeriod, argQuantity, argMS, argMode, argAlign},
	State:      KindString,
	Handler:    runQuota,
	Sample:     Sample{"GO.QUOTA KEY 16 3600 1 UPTO", "[0 16 15 -1 3600 1]", "[0 16 14 -1 3600 1]", "SET"},
	Wrong: []WrongCall{
		{"GO.QUOTA KEY 5 60 ALIGN", ErrAlignWithoutOffset},
		{"GO.QUOTA KEY 5 60 EXACT", ErrUnknownOption},
	},
}

var quotaRO = quota.readOnly("Tells what GO.QUOTA would reply; changes nothing.")

func runQuota(c *Call) ErrorCode {
	r, err := c.request(2, optMS|optUpTo|optForce|optAlign)
	if err != NoError {
		return err
	}
	var q quotaClause
	if err := q.parse(c.Args[1], &r); err != NoError {
		return err
	}
	if err := q.decide(c, 0); err != NoError {
		return err
	}
	q.apply(c, 0)
	c.reply(&q.v, q.Limit, r.quantity, r.opts)
	return NoError
}

// quotaClause is a QUOTA clause, or a GO.QUOTA call: what its words say, and its decision.
type quotaClause struct {
	funnel.QuotaParams
	state, next funnel.QuotaState
	v           funnel.Verdict
}

// parse reads the limit; the request has the rest.
func (q *quotaClause) parse(limit string, r *request) (err ErrorCode) {
	q.Limit, err = limitArg(limit)
	q.Period, q.Quantity = r.period.Micros(), r.quantity
	q.UpTo, q.Force = r.opts&optUpTo != 0, r.opts&optForce != 0
	q.Align, q.Offset = r.opts&optAlign != 0, r.offset.Micros()
	return err
}

// decide reads what the key holds and decides; nothing changes yet.
func (q *quotaClause) decide(c *Call, key int) (err ErrorCode) {
	if q.state, err = quotaState(&c.Keys[key]); err != NoError {
		return err
	}
	if q.next, q.v = funnel.Quota(c.Now, q.state, q.QuotaParams); q.v.TooMuch {
		return ErrTooMuchInUse
	}
	return NoError
}

// peek decides again for quantity 0.
func (q *quotaClause) peek(c *Call) {
	q.Quantity = 0
	q.next, q.v = funnel.Quota(c.Now, q.state, q.QuotaParams)
}

// apply says what becomes of the key.
func (q *quotaClause) apply(c *Call, key int) {
	k := &c.Keys[key]
	switch q.v.Change {
	case funnel.Store:
		k.Becomes, k.NewLen = String, putQuota(k.NewText[:0], q.next)
		k.expire(q.next.End.Nanos(), q.Period.Nanos())
	case funnel.Forget:
		k.Becomes = Absent
	}
}

// A fixed window is a string: the units used, '@' and the window's end in ns since the Unix
// epoch, in endDigits digits. The host reads only strings whose length lies in [MinQuotaLen,
// MaxQuotaLen]. An integer has at most 20 bytes, so a foreign counter is never read: reading
// would change how the server keeps it.
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
