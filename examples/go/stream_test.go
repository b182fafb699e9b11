package examples

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// model makes 20 tokens a second, n in all.
func model(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range n {
			if time.Sleep(50 * time.Millisecond); !yield("token") {
				return
			}
		}
	}
}

// A stream charges what it writes, stops when the money is gone, and charges what was written if its reader goes. One that is
// killed holds nothing after the ttl.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := throttletest.NewServer()
		budget := func(p throttle.Processor) throttle.Window {
			client, err := throttle.New(p)
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			return client.Quota("tokens", 1000, 24*time.Hour)
		}
		left := func() int64 {
			r, err := budget(server).Peek(t.Context(), "bob")
			require.NoError(t, err)
			return r.Remaining
		}
		stream := func(ctx context.Context, p throttle.Processor, n int, write func(int) error) (written int, err error) {
			err = Stream(ctx, budget(p), "bob", 100, model(n), func(string) error { written++; return write(written) })
			return written, err
		}
		fine := func(int) error { return nil }

		written, err := stream(t.Context(), server, 250, fine)
		require.NoError(t, err)
		require.Equal(t, 250, written)
		require.Equal(t, int64(750), left())

		gone, cancel := context.WithCancel(t.Context())
		_, err = stream(gone, server, 1000, func(n int) error {
			if n == 150 {
				cancel()
				return gone.Err()
			}
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, int64(600), left())

		process := &mortal{Server: server}
		_, err = stream(t.Context(), process, 1000, func(n int) error {
			if n < 150 {
				return nil
			}
			process.dead.Store(true)
			return io.ErrClosedPipe
		})
		require.ErrorIs(t, err, throttle.ErrLost)
		time.Sleep(30 * time.Second)
		require.Equal(t, int64(500), left(), "what it had settled")

		written, err = stream(t.Context(), server, 1000, fine)
		require.ErrorIs(t, err, ErrSpent)
		require.Equal(t, 500, written, "nothing is held any more")
		require.Zero(t, left())
	})
}

// mortal is the server, as a process sees it that dies.
type mortal struct {
	*throttletest.Server
	dead atomic.Bool
}

func (m *mortal) Process(ctx context.Context, cmd redis.Cmder) error {
	if m.dead.Load() {
		return errors.New("the process is dead")
	}
	return m.Server.Process(ctx, cmd)
}
