package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"gothrottle/tests/server"
	"gothrottle/throttle"
)

const units = 1_000_000_000 // per minute and together: the limit of all contenders admits all calls

// An asker asks for a decision on a key. The time limit of calls is long, so that they do not fail on a busy machine.
type asker func(key string) (admitted bool, err error)

// contenders are the ways to ask, in the order of the tables.
var contenders = []string{"go-redis Do", "coalesced", "budget 100", "redis_rate v10"}

// openClient opens a contender.
func openClient(name string, rdb *redis.Client) (asker, io.Closer, error) {
	options := []throttle.Option{throttle.Timeout(10 * time.Second)}
	switch name {
	case "go-redis Do":
		return func(key string) (bool, error) {
			reply, err := rdb.Do(ctx, "GO.THROTTLE", key, units-1, units, "60").Int64Slice()
			return err == nil && reply[0] == 0, err
		}, rdb, nil
	case "redis_rate v10":
		limiter, limit := redis_rate.NewLimiter(rdb), redis_rate.Limit{Rate: units, Period: time.Minute, Burst: units}
		return func(key string) (bool, error) {
			r, err := limiter.Allow(ctx, key, limit)
			return err == nil && r.Allowed > 0, err
		}, rdb, nil
	case "budget 100":
		options = append(options, throttle.Budget(100, time.Second))
	}
	client, err := throttle.New(rdb, options...)
	if err != nil {
		return nil, nil, err
	}
	rate := client.Rate("k", throttle.PerMinute(units))
	return func(key string) (bool, error) {
		r, err := rate.Allow(ctx, key)
		return r.Allowed, err
	}, client, nil
}

// BenchmarkClient asks by the Go client and others from 1, 16 and 256 goroutines for one key, and for many by Zipf's law. The
// contenders of a load follow each other, so a disturbance of the machine meets them alike.
func BenchmarkClient(b *testing.B) {
	visits := map[string][]string{"one": slices.Repeat([]string{"k0"}, 1<<17)}
	law := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 9_999)
	for range 1 << 17 {
		visits["Zipf"] = append(visits["Zipf"], fmt.Sprint("k", law.Uint64()))
	}
	for _, keys := range []string{"one", "Zipf"} {
		for _, goroutines := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("keys=%s/goroutines=%d", keys, goroutines), func(b *testing.B) {
				var list []row
				for _, name := range contenders {
					list = append(list, row{name: name, call: "GO."})
				}
				each(b, list, func(b *testing.B, program string, r row) map[string]float64 {
					s := open(b, program, r, 1, server.Options{})
					rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
					defer rdb.Close()
					ask, closer, err := openClient(r.name, rdb)
					s.no(err)
					defer closer.Close()
					asking(b, ask, goroutines, visits[keys], slice/4)
					cpu := s.cpu()
					calls := asking(b, ask, goroutines, visits[keys], slice)
					return map[string]float64{"server-ns/op": (s.cpu() - cpu) / calls}
				})
			})
		}
	}
}

// asking lets goroutines ask for a while. It returns the calls.
func asking(b *testing.B, ask asker, goroutines int, visits []string, d time.Duration) (calls float64) {
	var stop atomic.Bool
	var sum atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			n := 0
			for ; !stop.Load(); n++ {
				if admitted, err := ask(visits[(g*4099+n)%len(visits)]); !admitted {
					b.Errorf("a call was not admitted: %v", err)
					break
				}
			}
			sum.Add(int64(n))
		})
	}
	time.Sleep(d)
	stop.Store(true)
	all.Wait()
	return float64(sum.Load())
}
