package throttle

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// stuck is a hook that looks at no context: commands and pipelines end when it is closed.
type stuck chan struct{}

func (s stuck) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s stuck) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { <-s; cmd.SetErr(redis.Nil); return redis.Nil }
}

func (s stuck) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { <-s; return redis.Nil }
}

// Commands that were queued end in time too while a cluster client is cold. Their errors are not in the commands, which
// go-redis still uses.
func TestCold_queuedCommands(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true, ReadOnly: true, Addrs: []string{"127.0.0.1:1"}})
			t.Cleanup(func() { _ = rdb.Close() })
			hook := make(stuck)
			rdb.AddHook(hook)
			c, err := New(rdb, Options{})
			require.NoError(t, err)
			var cmds []redis.Cmder
			for range n {
				cmds = append(cmds, newGeneralCall(context.Background(), []any{"GO.THROTTLE", "k"}))
			}
			// The race detector finds a use of the commands that nothing orders before the late end of the hook.
			time.AfterFunc(3*time.Second, func() { close(hook) })
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			errs := c.sendAll(ctx, cmds)
			cancel()
			require.Len(t, errs, n)
			for _, err := range errs {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			require.NoError(t, c.Close())
		})
	}
}

// refusing is a hook that sends nothing and sets no error of a command.
type refusing struct{ stuck }

func (refusing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return io.ErrUnexpectedEOF }
}

// A hook that sends no pipeline fails its commands. The server did not decide them.
func TestSendAll_hookRefuses(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true, Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(refusing{})
	c, err := New(rdb, Options{})
	require.NoError(t, err)
	limit := PerHour(1)
	cmds := []redis.Cmder{newCall(background, "k", &limit, 1, take, 0, 0), newPolicyCall(context.Background(), "a:b", 1, take)}
	for _, err := range c.sendAll(c.deadline(), cmds) {
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}
