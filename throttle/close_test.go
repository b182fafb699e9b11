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
	back := map[string]int64{}
	for i := range maxPipeline + 100 {
		back[fmt.Sprint(i)] = 1
	}
	for err, want := range map[error]int{wrongType{}: maxPipeline + 100, io.EOF: maxPipeline} {
		sent := 0
		c, newErr := New(process(func(context.Context, redis.Cmder) error { sent++; return err }), Options{}, Timeout(time.Minute))
		require.NoError(t, newErr)
		l := c.Rate("t", PerHour(10), Budget(5, time.Second)).l
		require.ErrorIs(t, l.budgets.giveBack(back), err)
		require.Equal(t, want, sent)
	}
}
