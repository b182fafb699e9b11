package throttle

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle/internal/wire"
)

// errors.Is finds these in the errors of this package.
var (
	// ErrUnavailable: nobody decided. There was no reply in time or no connection, the server cannot write (loading,
	// out of memory, a replica, a cluster that is unavailable), or it refuses this client (a changed password or permission).
	// Other error replies count too, such as a proxy's, unless they begin with ERR. A sent call may have taken its
	// units.
	ErrUnavailable = wire.ErrUnavailable

	// ErrNoModule: the server does not know the command. Load gothrottle, or use the option Script. With it, the
	// server does not run scripts, or has no TIME in them.
	ErrNoModule = wire.ErrNoModule

	// ErrParams: the limit, the quantity, or the verb and the limit together make no sense, the key holds something that
	// is not this kind of limiter, or the server says ERR and something that this client doesn't know.
	ErrParams = wire.ErrParams

	// ErrLost is the cause of a lease's context if the slot was lost. After a Hold's Settle, nobody knows whether the cost
	// is counted.
	ErrLost = errors.New("throttle: the slot or hold was lost")
)

// Undecided reports whether an error of a decision is the server's: it is unavailable, too slow or full, lacks the
// module, or refuses the call or the key. FailOpen, FailClosed and FailLocal decide then. Other errors are the
// program's.
func Undecided(err error) bool {
	var reply redis.Error
	return errors.Is(err, ErrUnavailable) || errors.As(err, &reply)
}

// DeniedError is what Wait, WaitN, Lease, Acquire and Hold return if denied. errors.As finds a *DeniedError.
type DeniedError struct{ Result }

func (e *DeniedError) Error() string {
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("throttle: denied: %v", e.Cause)
	case e.RetryAfter == Never:
		return fmt.Sprintf("throttle: denied: waiting won't help, because the limit is %d", e.Limit)
	}
	return fmt.Sprintf("throttle: denied: try again in %s", e.RetryAfter)
}

// Unwrap returns the Cause: nil if the server decided.
func (e *DeniedError) Unwrap() error { return e.Cause }

// params returns an ErrParams with a reason.
func params(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrParams, fmt.Sprintf(format, args...))
}
