package wire

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/script"
)

type noScriptReply struct{ error }

func (noScriptReply) Error() string { return "NOSCRIPT No matching script." }
func (noScriptReply) RedisError()   {}

// Calls that find no script send its text once. A server that never knows it gets no call more than three times.
func TestScript_isSentOnce(t *testing.T) {
	for _, learns := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			known, sent, texts := false, map[string]int{}, 0
			c := newConn(t, process(func(ctx context.Context, cmd redis.Cmder) error {
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				words := cmd.Args()
				require.Equal(t, []any{1, words[3], "GO.QUOTA", 1, 1000}, words[2:])
				sent[words[3].(string)]++
				if words[0] == "EVAL" {
					require.Equal(t, script.Text, words[1])
					texts++
					known = learns
				} else if !known {
					return noScriptReply{}
				}
				return answer(ctx, cmd)
			}), nil)
			c.sha = "0123"
			var all sync.WaitGroup
			for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // twice as many as a lane sends at once
				all.Go(func() {
					_, err := ask(c, &Timeout{Limit: time.Minute}, "{k}"+key)
					require.NoError(t, err)
				})
			}
			all.Wait()
			for key, n := range sent {
				require.LessOrEqual(t, n, 3, key)
			}
			if learns {
				require.Equal(t, 1, texts)
			}
		})
	}
}
