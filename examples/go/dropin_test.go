package examples

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
)

// Public clients with a typed CL.THROTTLE, made for redis-cell, read the replies of this module.
func TestDropIn(t *testing.T) {
	addr, rdb := startServer(t)
	cell, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(cell.Close)
	valkeyCell, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(valkeyCell.Close)
	ctx := t.Context()
	for name, take := range map[string]func(key string, units int64) ([]int64, error){
		"rueidis": func(key string, units int64) ([]int64, error) {
			call := cell.B().ClThrottle().Key(key).MaxBurst(15).CountPerPeriod(30).Period(60).Quantity(units)
			return cell.Do(ctx, call.Build()).AsIntSlice()
		},
		"valkey-go": func(key string, units int64) ([]int64, error) {
			call := valkeyCell.B().ClThrottle().Key(key).MaxBurst(15).CountPerPeriod(30).Period(60).Quantity(units)
			return valkeyCell.Do(ctx, call.Build()).AsIntSlice()
		},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := take(name, 1)
			require.NoError(t, err)
			require.Equal(t, []int64{0, 16, 15, -1, 2}, reply)
			reply, err = take(name, 17)
			require.NoError(t, err)
			require.Equal(t, []int64{1, 16, -1}, []int64{reply[0], reply[1], reply[3]}, "it never fits")
			// A machine that is slower than the drain of a unit takes again.
			require.Eventually(t, func() bool {
				reply, err = take(name, 16)
				if err == nil && reply[0] == 0 {
					reply, err = take(name, 16)
				}
				return err == nil && reply[0] == 1 && reply[3] > 0 && reply[3] <= 32
			}, time.Minute, time.Millisecond)
			require.NoError(t, rdb.LPush(ctx, "list of "+name, 1).Err())
			_, err = take("list of "+name, 1)
			require.ErrorContains(t, err, "WRONGTYPE")
		})
	}
}
