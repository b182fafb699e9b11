// Package redis_rate has the API of github.com/go-redis/redis_rate/v10 over package throttle: with the import replaced,
// a program compiles, and gothrottle decides its calls.
//
// The differences: keys begin with "redisrate:", so that the old and the new version of a program can run side by side
// while it is deployed, each with limiters of its own. Concurrent calls of Allow for one key and limit share commands.
// Remaining and times are exact; times are rounded up to milliseconds. A call is sent once. AllowAtMost takes whole events
// only. With a Burst below 1 the server is not asked, and ResetAfter is 0. A negative n, which gives events back in
// redis_rate, is an error: package throttle has Refund.
package redis_rate

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/throttle"
)

// name is that of the limiter, and begins its keys.
const name = "redisrate"

// timeout bounds a call whose context has no deadline: the read timeout that go-redis has if nothing is set.
const timeout = 3 * time.Second

// Limit is a rate: Rate events per Period, of which Burst may happen together. If Burst is below 1 nothing is allowed.
type Limit struct {
	Rate   int
	Burst  int
	Period time.Duration
}

// PerSecond allows rate events a second, all of them together.
func PerSecond(rate int) Limit { return Limit{rate, rate, time.Second} }

// PerMinute allows rate events a minute, all of them together.
func PerMinute(rate int) Limit { return Limit{rate, rate, time.Minute} }

// PerHour allows rate events an hour, all of them together.
func PerHour(rate int) Limit { return Limit{rate, rate, time.Hour} }

// IsZero reports whether the limit is the zero Limit.
func (l Limit) IsZero() bool { return l == Limit{} }

// String returns the limit: "10 req/s (burst 10)".
func (l Limit) String() string {
	period := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[l.Period]
	if period == "" {
		period = l.Period.String()
	}
	return fmt.Sprintf("%d req/%s (burst %d)", l.Rate, period, l.Burst)
}

// Result is a decision.
type Result struct {
	Limit      Limit         // as given
	Allowed    int           // how many events may happen now
	Remaining  int           // how many more may happen together; 0 if the call was denied
	RetryAfter time.Duration // how long until the call is allowed; -1 if it was
	ResetAfter time.Duration // how long until nothing is in use
}

// Limiter asks a server with gothrottle.
type Limiter struct{ limits throttle.Rate }

// rediser is what redis_rate takes: a client of go-redis, or a type with these methods.
type rediser interface {
	redis.Scripter
	Del(ctx context.Context, keys ...string) *redis.IntCmd
}

// NewLimiter returns a Limiter over a client of go-redis: *redis.Client, *redis.ClusterClient, *redis.Ring. Types without
// Process are asked by Eval.
func NewLimiter(rdb rediser) *Limiter { return newLimiter(rdb, nil) }

// NewScriptLimiter is NewLimiter for servers that have not loaded gothrottle: see throttle.Script.
func NewScriptLimiter(rdb rediser) *Limiter { return newLimiter(rdb, throttle.Script()) }

func newLimiter(rdb rediser, script throttle.Option) *Limiter {
	processor, whole := rdb.(throttle.Processor)
	if !whole {
		processor = byEval{rdb}
	}
	client, _ := throttle.New(processor, throttle.Timeout(timeout), script) // these options are good
	return &Limiter{client.Rate(name, throttle.Unlimited())}
}

// byEval sends each call as a script.
type byEval struct{ rediser }

func (e byEval) Process(ctx context.Context, cmd redis.Cmder) error {
	reply, err := e.send(ctx, cmd.Args())
	if err == nil {
		err = memory.SetReply(cmd, reply)
	}
	cmd.SetErr(err)
	return err
}

// send sends the words of a call, whose only key is the second one or the fourth.
func (e byEval) send(ctx context.Context, words []any) (any, error) {
	switch name, second := words[0], words[1].(string); name {
	case "DEL":
		return e.Del(ctx, second).Result()
	case "EVALSHA":
		return e.EvalSha(ctx, second, []string{words[3].(string)}, words[4:]...).Result()
	case "EVAL":
		return e.Eval(ctx, second, []string{words[3].(string)}, words[4:]...).Result()
	default:
		return e.Eval(ctx, "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))", []string{second}, append([]any{name}, words[2:]...)...).Result()
	}
}

// Allow is AllowN for one event.
func (l Limiter) Allow(ctx context.Context, key string, limit Limit) (*Result, error) {
	return l.AllowN(ctx, key, limit, 1)
}

// AllowN reports whether n events may happen now. With n = 0 it returns the state and changes nothing.
func (l Limiter) AllowN(ctx context.Context, key string, limit Limit, n int) (*Result, error) {
	return l.ask(ctx, key, limit, n, n, throttle.Rate.AllowN)
}

// AllowAtMost allows up to n events, as many as may happen now. With n = 0 it changes nothing, and returns when one may.
func (l Limiter) AllowAtMost(ctx context.Context, key string, limit Limit, n int) (*Result, error) {
	return l.ask(ctx, key, limit, n, 1, throttle.Rate.AllowAtMost)
}

// Reset deletes the limiter: nothing is in use afterwards.
func (l Limiter) Reset(ctx context.Context, key string) error {
	return l.limits.Reset(ctx, key)
}

type verb func(throttle.Rate, context.Context, string, int64) (throttle.Result, error)

// ask asks for n events. The call is denied if fewer than least fit.
func (l Limiter) ask(ctx context.Context, key string, limit Limit, n, least int, ask verb) (*Result, error) {
	if limit.Burst < 1 && limit.Rate > 0 && n >= 0 {
		result := &Result{Limit: limit, RetryAfter: -1}
		if least > limit.Burst {
			result.RetryAfter = limit.interval(least - limit.Burst)
		}
		return result, nil
	}
	rate := l.limits.With(limit.exact())
	var r throttle.Result
	var err error
	if n == 0 {
		r, err = rate.Peek(ctx, key)
	} else {
		r, err = ask(rate, ctx, key, int64(n))
	}
	if err != nil {
		return nil, err
	}
	result := &Result{Limit: limit, Allowed: int(r.Granted), Remaining: int(r.Remaining), RetryAfter: -1, ResetAfter: r.ResetAfter}
	denied := !r.Allowed
	if n == 0 { // a look
		denied = r.RetryAfter > 0 || r.Remaining < int64(least)
	}
	if denied {
		result.Remaining, result.RetryAfter = 0, r.RetryAfter
		if n == 0 || r.RetryAfter == throttle.Never {
			result.RetryAfter = r.ResetAfter + limit.interval(least-limit.Burst)
		}
	}
	return result, nil
}

// interval returns the time in which n events drain.
func (l Limit) interval(n int) time.Duration {
	return time.Duration(float64(n) * float64(l.Period) / float64(l.Rate))
}

// exact returns the limit as package throttle has it, whose periods are whole milliseconds: 3 per 1.5 ms is 30 per 15 ms.
func (l Limit) exact() throttle.Limit {
	count, period := int64(l.Rate), l.Period
	for period%time.Millisecond != 0 && period < math.MaxInt64/10 {
		count, period = 10*count, 10*period
	}
	return throttle.Per(count, period).Burst(int64(l.Burst))
}
