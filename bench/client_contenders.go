package main

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"gothrottle/throttle"
)

// A pace is the limit that all limiters of a slice have: a rate with a burst.
type pace struct {
	count  int64 // units per period
	period time.Duration
	burst  int64 // units that fit at once
}

// limit returns the limit of package throttle.
func (p pace) limit() throttle.Limit { return throttle.Per(p.count, p.period).Burst(p.burst) }

// perSecond returns the rate in units per second.
func (p pace) perSecond() float64 { return float64(p.count) / p.period.Seconds() }

// An answer is what one ask gave: decisions that admit, decisions that deny, and calls that
// ended with an error.
type answer struct{ admitted, denied, failed int64 }

// one returns the answer of one decision.
func one(allowed bool, err error) answer {
	switch {
	case err != nil:
		return answer{failed: 1}
	case allowed:
		return answer{admitted: 1}
	}
	return answer{denied: 1}
}

// A limiter decides for many goroutines. keys has the keys of one ask; its length is the
// limiter's depth.
type limiter struct {
	ask   func(ctx context.Context, keys []string) answer
	close func() error
}

// A clientContender is a way to ask a server for decisions from Go.
type clientContender struct {
	name   string
	depth  int // decisions of one ask
	excess int // units that the contender may admit above its limit
	open   func(rdb *redis.Client, p pace) (limiter, error)
}

// The names of the contenders.
const (
	rawDo       = "go-redis Do"
	uncoalesced = "plain"
	pipelined   = "pipelined"
	coalesced   = "coalesced"
	budgeted    = "budget 100"
	redisRate   = "redis_rate v10"
	throttld    = "throttled v2"
)

// queueDepth is how many decisions a pipeline of Queue has.
const queueDepth = 32

func clientContenders() []*clientContender {
	return []*clientContender{
		{rawDo, 1, 0, openRaw},
		{uncoalesced, 1, 0, opener(throttle.Options{NoCoalescing: true})},
		{pipelined, queueDepth, 0, openQueue},
		{coalesced, 1, 0, opener(throttle.Options{})},
		{budgeted, 1, 100, opener(throttle.Options{Budget: throttle.Budget{Units: 100}})},
		{redisRate, 1, 0, openRedisRate},
		{throttld, 1, 0, openThrottled},
	}
}

func nothing() error { return nil }

// openRaw sends the command that package throttle sends, and reads the first integer of its
// reply.
func openRaw(rdb *redis.Client, p pace) (limiter, error) {
	return limiter{func(ctx context.Context, keys []string) answer {
		reply, err := rdb.Do(ctx, "GO.THROTTLE", keys[0], p.burst-1, p.count, p.period.Milliseconds(), 1, "MS").Slice()
		if err != nil {
			return answer{failed: 1}
		}
		limited, ok := reply[0].(int64)
		return one(ok && limited == 0, nil)
	}, nothing}, nil
}

// opener returns a function that opens Allow with options.
func opener(o throttle.Options) func(*redis.Client, pace) (limiter, error) {
	return func(rdb *redis.Client, p pace) (limiter, error) {
		client, err := throttle.New(rdb, o)
		if err != nil {
			return limiter{}, err
		}
		limit := p.limit()
		return limiter{func(ctx context.Context, keys []string) answer {
			r, err := client.Allow(ctx, keys[0], limit)
			return one(r.Allowed, err)
		}, client.Close}, nil
	}
}

// openQueue puts the decisions of an ask into one pipeline.
func openQueue(rdb *redis.Client, p pace) (limiter, error) {
	client, err := throttle.New(rdb, throttle.Options{})
	if err != nil {
		return limiter{}, err
	}
	limit := p.limit()
	return limiter{func(ctx context.Context, keys []string) (a answer) {
		pipe := rdb.Pipeline()
		pending := make([]*throttle.Pending, len(keys))
		for i, key := range keys {
			pending[i] = client.Queue(ctx, pipe, key, limit, 1)
		}
		_, _ = pipe.Exec(ctx) // each Pending has its own error
		for _, p := range pending {
			r, err := p.Result()
			a.add(one(r.Allowed, err))
		}
		return a
	}, client.Close}, nil
}

func (a *answer) add(b answer) {
	a.admitted, a.denied, a.failed = a.admitted+b.admitted, a.denied+b.denied, a.failed+b.failed
}

func openRedisRate(rdb *redis.Client, p pace) (limiter, error) {
	l := redis_rate.NewLimiter(rdb)
	limit := redis_rate.Limit{Rate: int(p.count), Period: p.period, Burst: int(p.burst)}
	return limiter{func(ctx context.Context, keys []string) answer {
		r, err := l.Allow(ctx, keys[0], limit)
		return one(err == nil && r.Allowed > 0, err)
	}, nothing}, nil
}

func openThrottled(rdb *redis.Client, p pace) (limiter, error) {
	store, err := goredisstore.NewCtx(rdb, "throttled:")
	if err != nil {
		return limiter{}, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(p.count), p.period), MaxBurst: int(p.burst - 1)}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return limiter{}, err
	}
	return limiter{func(ctx context.Context, keys []string) answer {
		limited, _, err := l.RateLimitCtx(ctx, keys[0], 1)
		return one(!limited, err)
	}, nothing}, nil
}
