package throttle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

var errReply = errors.New("throttle: a reply that this client does not know")

// replyErrors says what the first words of an error reply mean. What is not listed is returned as it is.
var replyErrors = []struct {
	prefix string
	means  error
}{
	{"ERR unknown command", ErrNoModule},
	{"WRONGTYPE", ErrWrongKey},
	{"ERR the hash at this key", ErrWrongKey},
	{"ERR the string at this key", ErrWrongKey},
	{"ERR the sorted set at this key", ErrWrongKey},
	{"ERR the rate limiter at this key is damaged", ErrWrongKey},
	{"ERR internal error", nil},
	{"ERR max number of clients reached", ErrUnavailable},
	{"ERR", ErrParams},
	{"LOADING", ErrUnavailable},
	{"OOM", ErrUnavailable},
	{"MISCONF", ErrUnavailable},
	{"BUSY", ErrUnavailable},
	{"READONLY", ErrUnavailable},
	{"CROSSSLOT", ErrParams},
	{"MASTERDOWN", ErrUnavailable},
	{"NOREPLICAS", ErrUnavailable},
	{"CLUSTERDOWN", ErrUnavailable},
	{"TRYAGAIN", ErrUnavailable},
	{"MOVED", ErrUnavailable},
	{"ASK", ErrUnavailable},
}

// classify wraps an error of go-redis so that errors.Is tells its kind. The caller's own cancellation stays as it is.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var reply redis.Error // after the return for nil, because reply is allocated
	switch {
	case errors.Is(err, ErrUnavailable) || errors.Is(err, errReply) || errors.Is(err, ErrClosed):
		return err
	case context.Cause(ctx) != nil && errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("throttle: %w", ctx.Err())
	case errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.As(err, &reply):
		for _, known := range replyErrors {
			if strings.HasPrefix(reply.Error(), known.prefix) {
				if known.means == nil {
					return fmt.Errorf("throttle: %w", err)
				}
				return fmt.Errorf("%w: %w", known.means, err)
			}
		}
		return fmt.Errorf("throttle: %w", err)
	}
	// Everything else happened on the way: a time-out, a refused or broken connection, an exhausted pool.
	var network net.Error
	if errors.As(err, &network) && network.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w (%w)", ErrUnavailable, err, context.DeadlineExceeded)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
