package throttle_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
)

// A pipeline of the caller is sent once, with or without MULTI, for a limit of any kind.
func TestQueue_sentOnce(t *testing.T) {
	for _, limit := range []throttle.Limit{throttle.PerHour(1), throttle.Policy()} {
		for _, multi := range []bool{false, true} {
			s := newSwallower(t)
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr().String(), ContextTimeoutEnabled: true, ReadTimeout: time.Second})
			t.Cleanup(func() { _ = rdb.Close() })
			c := newReal(t, rdb, throttle.Options{})
			pipe := rdb.Pipeline()
			if multi {
				pipe = rdb.TxPipeline()
			}
			pending := c.Queue(background, pipe, "a:b", limit, 1)
			_, err := pipe.Exec(background)
			require.Error(t, err)
			_, err = pending.Result()
			require.ErrorIs(t, err, throttle.ErrUnavailable)
			require.EqualValues(t, 1, s.got.Load())
		}
	}
}
