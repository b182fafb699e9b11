package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/gateway/internal/rules"
	"gothrottle/throttle"
)

// Describe says about a limit: its rule and key, what is in use on the server, and when all of it is free again.
func (e *Engine) Describe(ctx context.Context, f rules.Found) string {
	where := f.Where(e.Prefix)
	if f.Unlimited || f.Units == 0 {
		return where
	}
	var r throttle.Result
	var err error
	switch c := e.bound(f.Limit).at[e.Remote].(type) {
	case counter:
		r, err = c.Peek(ctx, f.Key)
	case throttle.Slots:
		r, err = c.Peek(ctx, f.Key, cmp.Or(f.Holder, "gothrottle.explain"))
	}
	if err != nil {
		return fmt.Sprintf("%s: nobody knows what is in use: %v", where, err)
	}
	where += fmt.Sprintf(": %d of %d in use", r.Limit-r.Remaining, r.Limit)
	if r.RetryAfter > 0 && r.RetryAfter != throttle.Never { // a lockout, a debt, or slots that are all taken
		where += fmt.Sprintf(", closed for %v", r.RetryAfter.Round(time.Millisecond))
	}
	used := r.Remaining < r.Limit
	if used && (r.Remaining == 0 || f.Algorithm != rules.Concurrency) { // else the time counts a slot that nobody has taken
		where += fmt.Sprintf(", all free in %v", r.ResetAfter.Round(time.Millisecond))
	}
	return where
}

// Reset forgets what is in use of a limit, lockouts and slots too, at the server and in this process.
func (e *Engine) Reset(ctx context.Context, f rules.Found) error {
	at := e.bound(f.Limit).at
	return errors.Join(at[e.Remote].Reset(ctx, f.Key), at[e.local].Reset(ctx, f.Key))
}

// Top returns the keys that the masters have denied most often, most first, each with the number before it.
func (e *Engine) Top(ctx context.Context) (lines []string, err error) {
	type denied struct {
		times int64
		key   any
	}
	var mu sync.Mutex
	var all []denied
	ask := func(ctx context.Context, node *redis.Client) error {
		rows, err := node.Do(ctx, "GO.TOP", 100).Slice()
		mu.Lock()
		defer mu.Unlock()
		for _, row := range rows {
			if row, _ := row.([]any); len(row) > 1 {
				times, _ := row[1].(int64)
				all = append(all, denied{times, row[0]})
			}
		}
		return err
	}
	switch rdb := e.rdb.(type) {
	case *redis.Client:
		err = ask(ctx, rdb)
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, ask)
	}
	slices.SortStableFunc(all, func(a, b denied) int { return cmp.Compare(b.times, a.times) })
	for _, one := range all {
		lines = append(lines, fmt.Sprintf("%d\t%s", one.times, one.key))
	}
	return lines, err
}

// Clock is a hook of a server's client that measures its calls, one command or a pipeline.
type Clock func(seconds float64)

// DialHook changes nothing.
func (c Clock) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook measures one command.
func (c Clock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmd)
		c(time.Since(began).Seconds())
		return err
	}
}

// ProcessPipelineHook measures a pipeline.
func (c Clock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		c(time.Since(began).Seconds())
		return err
	}
}
