package throttle

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// refusing is a hook of go-redis that refuses the first command of a pipeline, and sends nothing.
type refusing struct{ redis.Hook }

func (refusing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (refusing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		cmds[0].SetErr(wrongType{})
		return io.EOF
	}
}

// Each command of a pipeline has its own error. One that a hook did not send has the pipeline's.
func TestLane_errorsOfAPipeline(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer rdb.Close()
	rdb.AddHook(refusing{})
	c, err := New(rdb, Options{})
	require.NoError(t, err)
	batch := make([]*queued, 2)
	for i := range batch {
		limit, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		batch[i] = &queued{cmd: &call{}, w: &within{limit, limit}, done: make(chan struct{})}
	}
	c.lanes[0].flush(c, batch)
	<-batch[1].done
	require.ErrorIs(t, batch[0].err, wrongType{})
	require.ErrorIs(t, batch[1].err, io.EOF)
	require.NoError(t, c.Close())
}

// The hash tag of a key is that of the cluster specification.
func TestHashTag(t *testing.T) {
	for key, tag := range map[string]string{"a": "a", "a{b}c": "b", "{b}{c}": "b", "a{}b": "a{}b", "a{}{b}": "a{}{b}", "a{b": "a{b", "{{b}": "{b"} {
		require.Equal(t, tag, hashTag(key), key)
	}
}
