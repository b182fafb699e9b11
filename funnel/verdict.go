package funnel

// Change says what a call did to the state.
type Change int8

const (
	Keep   Change = iota // nothing: the state stays as it was, or stays absent
	Store                // the returned state replaces the old one
	Forget               // nothing is in use any more: no state is needed
)

// Verdict is the answer to one call.
//
// RetryAfter is how long until the same call is admitted, or after a partial grant, how long
// until one more unit is. It is rounded up. It is 0 if there is nothing to wait for.
type Verdict struct {
	Limited    bool
	TooMuch    bool // more would be in use than can be: the call is an error and changes nothing
	Change     Change
	Remaining  int64 // whole units left after the call, 0 to limit
	RetryAfter Nanos // or Never
	ResetAfter Nanos // until nothing is in use and there is no lockout, rounded up
	Granted    int64 // units taken; negative: given back
	Renewed    bool  // of a slot: the caller already held it
	Wait       Nanos // with Reserve: until the caller may act, rounded up; 0: at once, or Limited
}

// Never is the RetryAfter of a call that can never be admitted.
const Never Nanos = -1

// grantUpTo returns the quantity that a call with UpTo asks for: what is left if that is
// less than quantity, but at least 1 unless the call peeks.
func grantUpTo(quantity, left int64) int64 {
	return min(quantity, max(left, 1))
}

// refunded returns what a refund did to the state. granted is 0 or negative; void says that the
// state is not needed after the refund. A refund of nothing leaves even a void state as it is.
func refunded(granted int64, void bool) Change {
	switch {
	case granted == 0:
		return Keep
	case void:
		return Forget
	}
	return Store
}
