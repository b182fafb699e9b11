package throttle

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

var errNotExecuted = errors.New("throttle: the pipeline was not executed")

// Pending is a decision whose command stands in a pipeline.
type Pending struct {
	ctx   context.Context
	cmd   redis.Cmder
	limit Limit
	n     int64
	err   error
}

// Queue puts a call for n units into a pipeline of the caller. The decision is there after the pipeline was executed. The
// time limit is the pipeline's own. There is no fallback: the caller gets the errors of the pipeline. The whole pipeline is
// sent once, with all that the caller put into it.
func (c *Client) Queue(ctx context.Context, pipe redis.Pipeliner, key string, limit Limit, n int64) *Pending {
	p := &Pending{ctx: ctx, limit: limit, n: n}
	less, err := c.o.Budget.less(&limit)
	if p.err = checkVerb("Queue", &limit, n, take); p.err == nil {
		p.err = err
	}
	if p.err == nil && c.closed.Load() {
		p.err = ErrClosed
	}
	if p.err != nil {
		return p
	}
	key = c.o.KeyPrefix + key
	if limit.kind == policyKind {
		p.cmd = newPolicyCall(ctx, key, n, take)
	} else {
		p.cmd = newCall(within{ctx, ctx}, key, &limit, n, take, less, 0)
	}
	p.err = pipe.Process(ctx, p.cmd)
	return p
}

// Result returns the decision. Before the pipeline was executed it returns an error.
func (p *Pending) Result() (Result, error) {
	if p.err != nil {
		return Result{}, p.err
	}
	if err := p.cmd.Err(); err != nil {
		return Result{}, classify(p.ctx, err)
	}
	if !answered(p.cmd) {
		return Result{}, errNotExecuted
	}
	if cmd, ok := p.cmd.(*generalCall); ok {
		ints, _ := leadingInts(cmd.Val())
		return readResult(ints, &p.limit, p.n, take)
	}
	return readResult(p.cmd.(*call).Val(), &p.limit, p.n, take)
}
