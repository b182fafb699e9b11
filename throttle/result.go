package throttle

import (
	"errors"
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
	FromLocal                  // the limiter in this process, which has a share of the limit
)

// String returns the source in one word, as metrics want it.
func (s Source) String() string {
	names := [...]string{"server", "batch", "denials", "budget", "failed-open", "failed-closed", "local"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Source(%d)", uint8(s))
}

// What errors.Is tells of the errors of this package.
var (
	// ErrUnavailable: no reply in time, no connection, or the server refuses to write (loading, out of memory, a replica,
	// a cluster that is down). A call that was sent may have taken its units.
	ErrUnavailable = errors.New("throttle: the server is unavailable")

	// ErrNoModule: the server does not know the command.
	ErrNoModule = errors.New("throttle: the server has not loaded gothrottle")

	// ErrParams: the limit, the quantity, or the verb and the limit together make no sense.
	ErrParams = errors.New("throttle: bad parameters")

	// ErrWrongKey: the key holds something that is not this kind of limiter.
	ErrWrongKey = errors.New("throttle: the key holds something else")

	// ErrClosed: the client was closed.
	ErrClosed = errors.New("throttle: the client is closed")
)

// params returns an ErrParams with a reason. Pass a Limit by value: a pointer would make the limit of every call an
// allocation.
func params(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrParams, fmt.Sprintf(format, args...))
}
