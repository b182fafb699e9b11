package throttle

import (
	"fmt"
	"time"
)

// Never is the RetryAfter of a call that no wait would admit: it asked for more than its limit.
const Never time.Duration = 1<<63 - 1

// Result is a decision. The zero Result denies. A denial is no error.
type Result struct {
	Allowed    bool
	Limit      int64         // units that fit at once
	Remaining  int64         // whole units left, 0 to Limit
	Granted    int64         // units taken; negative: units given back
	RetryAfter time.Duration // how long until the same call is admitted, or Never; 0 if it was. After a part was granted: how long until one more unit
	ResetAfter time.Duration // how long until nothing is in use
	Source     Source        // who decided
	Cause      error         // why the server did not decide; nil if it did
}

// Source says who decided.
type Source uint8

const (
	FromServer   Source = iota // the server, in a call of its own
	FromBatch                  // the server, in one call together with concurrent callers of the same limiter
	FromDenials                // the deny cache: the server denied the same call, and its RetryAfter has not passed
	FromBudget                 // the local budget: units that the server granted before
	FailedOpen                 // nobody: the server is unavailable, and the client was told to admit
	FailedClosed               // nobody: the server is unavailable, and the client was told to deny
)

// String returns the source in one word, as metrics want it.
func (s Source) String() string {
	names := [...]string{"server", "batch", "denials", "budget", "failed-open", "failed-closed"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Source(%d)", uint8(s))
}
