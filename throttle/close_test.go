package throttle

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

type wrongType struct{}

func (wrongType) Error() string { return "WRONGTYPE" }
func (wrongType) RedisError()   {}

// Units that one key refuses do not keep the units of others from going back. A server that does not answer does.
func TestGiveBack_errors(t *testing.T) {
	back := map[entryKey]int64{}
	for i := range maxPipeline + 100 {
		back[entryKey{fmt.Sprint(i), PerHour(10), 1}] = 1
	}
	for err, want := range map[error]int{wrongType{}: maxPipeline + 100, io.EOF: maxPipeline} {
		sent := 0
		c, newErr := New(process(func(context.Context, redis.Cmder) error { sent++; return err }), Options{Timeout: time.Minute})
		require.NoError(t, newErr)
		require.ErrorIs(t, c.giveBack(back), err)
		require.Equal(t, want, sent)
	}
}

// Check and Queue of a closed client return ErrClosed, as other verbs do.
func TestClose_checkAndQueue(t *testing.T) {
	c, err := New(admitting{}, Options{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Check(context.Background()), ErrClosed)
	pipe := new(redis.Pipeline)
	_, err = c.Queue(context.Background(), pipe, "k", PerHour(1), 1).Result()
	require.ErrorIs(t, err, ErrClosed)
	require.Zero(t, pipe.Len())
}

// A decision is asked for before its pipeline was executed: the error says so, of every limit.
func TestQueue_notExecuted(t *testing.T) {
	c, err := New(admitting{}, Options{})
	require.NoError(t, err)
	for _, limit := range []Limit{PerHour(1), Policy()} {
		r, err := c.Queue(context.Background(), new(redis.Pipeline), "a:b", limit, 1).Result()
		require.ErrorIs(t, err, errNotExecuted)
		require.Zero(t, r)
	}
}
