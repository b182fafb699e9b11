package throttle

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// localKeys is how many keys a process counts while its server is unavailable.
const localKeys = 100_000

// here is a Processor in this process, for FailLocal.
type here struct {
	*memory.Table
	of *Client
}

// Now returns the time of the client's clock.
func (h here) Now() time.Time { return h.of.now() }

func (h here) Process(_ context.Context, cmd redis.Cmder) error {
	err := h.Table.Process(funnel.Micros(h.Now().UnixMicro()), cmd)
	cmd.SetErr(err)
	return err
}

// decidesHere makes the client that decides in this process, if there is none yet.
func (c *Client) decidesHere() {
	if c.inside == nil {
		o := options{settings: settings{timeout: c.o.timeout}, logger: c.o.logger, keyPrefix: c.o.keyPrefix}
		c.inside = newClient(here{memory.NewTable(localKeys), c}, o)
	}
}

// falls reports whether FailLocal decides after this error.
func (l *limiter) falls(v string, cause error) bool {
	return l.fallback == failedLocal && l.kind != policyKind && Undecided(cause) && !slices.Contains(withoutFallback, v)
}

// otherwise is what a verb returns after an error: the decision of this process, with a share of the limit, or another fallback.
func (l *limiter) otherwise(v string, n int64, cause error, decide func(here limiter) (Result, error)) (Result, error) {
	if !l.falls(v, cause) {
		return l.failed(v, n, cause)
	}
	r, err := decide(limiter{l.inner, l.bounds.part(l.share)})
	r.locally(cause)
	return r, err
}

// part returns a share of the bounds: fewer units, or one unit in a longer period.
func (b bounds) part(share float64) bounds {
	if b.answer != asks {
		return b
	}
	units := float64(b.units) * share
	if b.kind == rateKind || units < 1 { // the period makes the rate exact
		slower := 1 / share
		if b.kind != rateKind {
			slower, b.day = 1/units, 0
		}
		ms := math.Round(float64(b.period.Milliseconds()) * slower)
		b.period = min(time.Duration(min(ms, maxPeriod.Seconds()*1000))*time.Millisecond, maxPeriod)
	}
	b.units = max(int64(units), 1)
	return b
}

// locally marks a decision of this process.
func (r *Result) locally(cause error) {
	if r.Source == fromServer {
		r.Source, r.Cause = failedLocal, cause
	}
}
