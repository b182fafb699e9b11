package throttletest_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle/throttletest"
)

var ctx = context.Background()

// The clock is in the test's hand: what drains in an hour needs no hour. So are failures, policies and keys.
func TestServer_inHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := throttletest.New(t)
		require.Error(t, s.SetPolicies("nonsense"))
		require.NoError(t, s.SetPolicies("a THROTTLE 0 1 1h"))
		for _, step := range []struct {
			later time.Duration
			fails error
			want  bool
		}{{0, io.EOF, false}, {0, nil, true}, {0, nil, false}, {59 * time.Minute, nil, false}, {time.Minute, nil, true}} {
			s.Advance(step.later)
			s.Fail(step.fails)
			r, err := c.Policy("a").Allow(ctx, "bob")
			require.ErrorIs(t, err, step.fails)
			require.Equal(t, step.want, r.Allowed)
		}
		require.EqualValues(t, 5, s.Calls())
		require.True(t, s.Delete("a:bob"))
		require.False(t, s.Delete("a:bob"))
		_, err := c.Policy("a").Allow(ctx, "amy")
		require.NoError(t, err)
		require.Equal(t, 1, s.Keys())
		s.Advance(2 * time.Hour)
		require.Zero(t, s.Keys())
	})
}

// Commands of go-redis run, too, if their replies are numbers.
func TestServer_process(t *testing.T) {
	s := throttletest.NewServer()
	general := redis.NewCmd(ctx, "GO.QUOTA", "q", 5, 60)
	require.NoError(t, s.Process(ctx, general))
	require.Equal(t, []any{int64(0), int64(5), int64(4), int64(-1), int64(60)}, general.Val())
	require.Error(t, s.Process(ctx, redis.NewStringCmd(ctx, "GO.QUOTA", "q", 5, 60)))
	require.Error(t, s.Process(ctx, redis.NewIntSliceCmd(ctx, "GO.ALL", "a", "QUOTA", 5, 60)))
	require.Error(t, s.Process(ctx, redis.NewIntCmd(ctx, "GO.QUOTA", "q", 5, 60)))
	deleted := redis.NewIntCmd(ctx, "DEL", "q", "r")
	require.NoError(t, s.Process(ctx, deleted))
	require.EqualValues(t, 1, deleted.Val())
	unknown := redis.NewCmd(ctx, "GET", "q")
	require.ErrorContains(t, s.Process(ctx, unknown), "unknown command")
	require.Error(t, unknown.Err())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, s.Process(ended, general), context.Canceled)
}

// A network has the faults of Fail, too: a reply, or connections that are refused.
func TestServer_network(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttletest.NewServer()
		rdb := s.Redis(t)
		ask := func() error { return rdb.Do(ctx, "GO.QUOTA", "q", 5, 60).Err() }
		require.NoError(t, ask())
		require.EqualValues(t, 1, s.Calls())
		require.Equal(t, 1, s.Cut())
		synctest.Wait()
		require.NoError(t, rdb.Ping(ctx).Err())
		s.Fail(proto("LOADING soon"))
		require.ErrorContains(t, ask(), "LOADING soon")
		s.Fail(io.EOF)
		synctest.Wait()
		require.ErrorContains(t, ask(), "refused")
		s.Fail(nil)
		require.NoError(t, ask())
	})
	plain := redis.NewClient(&redis.Options{Addr: throttletest.NewServer().Serve(t)})
	defer plain.Close()
	require.NoError(t, plain.Do(ctx, "GO.QUOTA", "q", 5, 60).Err())
}

type proto string

func (p proto) Error() string { return string(p) }
func (proto) RedisError()     {}
