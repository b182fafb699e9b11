package throttle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// errors.Is finds these in the errors of this package.
var (
	// ErrUnavailable: nobody decided. There was no reply in time or no connection, the server cannot write (loading, out of
	// memory, a replica, a cluster that is down), or it refuses this client (a changed password or permission). So is every
	// error reply that is none of gothrottle's, such as a proxy's. A call that was sent may have taken its units.
	ErrUnavailable = errors.New("throttle: the server is unavailable")

	// ErrNoModule: the server does not know the command.
	ErrNoModule = errors.New("throttle: the server has not loaded gothrottle")

	// ErrParams: the limit, the quantity, or the verb and the limit together make no sense.
	ErrParams = errors.New("throttle: bad parameters")

	// ErrWrongKey: the key holds something that is not this kind of limiter.
	ErrWrongKey = errors.New("throttle: the key holds something else")

	// ErrClosed: the client was closed.
	ErrClosed = errors.New("throttle: the client is closed")

	// ErrDenied: Wait, WaitN, Lease or Acquire was not admitted. errors.As finds a *DeniedError.
	ErrDenied = errors.New("throttle: denied")

	// ErrLost is the cause of a lease's context that ended because the slot was lost.
	ErrLost = errors.New("throttle: the lease was lost")
)

// DeniedError is an ErrDenied with its decision.
type DeniedError struct{ Result Result }

func (e *DeniedError) Error() string {
	switch {
	case e.Result.Cause != nil:
		return fmt.Sprintf("%v: %v", ErrDenied, e.Result.Cause)
	case e.Result.RetryAfter == Never:
		return fmt.Sprintf("%v: no wait helps", ErrDenied)
	}
	return fmt.Sprintf("%v: try again in %s", ErrDenied, e.Result.RetryAfter)
}

// Unwrap returns ErrDenied, and the Cause if there is one.
func (e *DeniedError) Unwrap() []error {
	if e.Result.Cause != nil {
		return []error{ErrDenied, e.Result.Cause}
	}
	return []error{ErrDenied}
}

// params returns an ErrParams with a reason.
func params(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrParams, fmt.Sprintf(format, args...))
}

var errReply = errors.New("throttle: a reply that this client does not know")

// replyErrors says what the first words of an error reply mean. ownErrors are those of gothrottle that follow "ERR ", or
// "ERR clause N: ". What is not listed is ErrUnavailable.
var (
	replyErrors = []struct {
		prefix string
		means  error
	}{
		{"ERR unknown command", ErrNoModule},
		{"WRONGTYPE", ErrWrongKey},
		{"CROSSSLOT", ErrParams},
		{"ERR the hash at this key", ErrWrongKey},
		{"ERR the string at this key", ErrWrongKey},
		{"ERR the sorted set at this key", ErrWrongKey},
		{"ERR the rate limiter at this key is damaged", ErrWrongKey},
	}
	ownErrors = strings.Split("wrong number of arguments|unknown option|option '|'|RESERVE |LOCKOUT |ALIGN |FORCE |UPTO |MS |"+
		"max_burst |count |period |quantity |(max_burst + 1)|the rate must|limit |ttl |offset |maxwait |the time of |"+
		"what is in use|more than |an id |at most |a clause |a key |a period |only the |a WINDOW|the key '|no policy |the count of keys|no denials ", "|")
	// The server says these of itself, so that no other key would be decided either.
	serverErrors = strings.Split("LOADING|OOM|MISCONF|BUSY|READONLY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|NOAUTH|WRONGPASS|ERR max number of clients", "|")
)

func hasPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// meaning returns what an error reply means.
func meaning(text string) error {
	for _, known := range replyErrors {
		if strings.HasPrefix(text, known.prefix) {
			return known.means
		}
	}
	if own, found := strings.CutPrefix(text, "ERR "); found {
		if rest, of := strings.CutPrefix(own, "clause "); of {
			_, own, _ = strings.Cut(rest, ": ")
		}
		if hasPrefix(own, ownErrors) {
			return ErrParams
		}
	}
	return ErrUnavailable
}

// failsAll reports whether an ErrUnavailable says that calls for other keys would fail, too.
func failsAll(err error) bool {
	var reply redis.Error
	return !errors.As(err, &reply) || hasPrefix(reply.Error(), serverErrors)
}

// classify wraps an error of go-redis so that errors.Is finds its kind.
func classify(err error) error {
	if err == nil {
		return nil
	}
	var reply redis.Error // after the return for nil, because reply is allocated
	switch {
	case errors.Is(err, ErrUnavailable) || errors.Is(err, errReply) || errors.Is(err, ErrClosed) || errors.Is(err, ErrNoModule):
		return err
	case errors.As(err, &reply):
		return fmt.Errorf("%w: %w", meaning(reply.Error()), err)
	}
	// Everything else happened on the way: a time-out, a refused or broken connection, an exhausted pool.
	var network net.Error
	if errors.As(err, &network) && network.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w (%w)", ErrUnavailable, err, context.DeadlineExceeded)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
