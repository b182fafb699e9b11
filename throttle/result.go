package throttle

import "time"

// Never is the RetryAfter of a call that no wait would admit.
const Never time.Duration = 1<<63 - 1

// Result is a decision. The zero Result denies. A denial isn't an error.
//
// The Source says who decided, for metrics: "server", perhaps in one call for several callers; "denials", the deny cache;
// "budget", which has units that the server granted before; "limit", without a question, if the limit is Unlimited or
// Suspended; and if the server did not decide "failed-open", "failed-closed" or "failed-local", by the option of that name.
type Result struct {
	Allowed    bool
	Renewed    bool          // of Slots: the holder had the slot already. Granted is then 0
	Limit      int64         // units that fit together
	Remaining  int64         // whole units left, 0 to Limit
	Granted    int64         // units taken; negative: units given back
	RetryAfter time.Duration // how long until the same call is admitted, or Never; 0 if it was. If only part was granted: how long until one more unit
	ResetAfter time.Duration // how long until nothing is in use
	Source     string        // see above; "" if there is an error
	Cause      error         // why the server did not decide; nil if it did
}

// RetryAfterSeconds is RetryAfter for the HTTP header of that name: in whole seconds, rounded up, and at least 1 after a
// denial. It is 0 if no wait is needed or none helps: then set no header.
func (r Result) RetryAfterSeconds() int64 {
	if r.RetryAfter == Never {
		return 0
	}
	seconds := int64((r.RetryAfter + time.Second - 1) / time.Second)
	if !r.Allowed {
		seconds = max(seconds, 1)
	}
	return seconds
}

// The Sources of Results.
const (
	fromServer   = "server"
	fromDenials  = "denials"
	fromBudget   = "budget"
	fromLimit    = "limit"
	failedOpen   = "failed-open"
	failedClosed = "failed-closed"
	failedLocal  = "failed-local"
)
