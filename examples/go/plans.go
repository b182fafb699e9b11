package examples

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
)

// Plan is a row of a table in a database: how many requests a tenant has per minute.
type Plan struct {
	Tenant    string
	PerMinute int64 // 0: unlimited
	Suspended bool
}

// Plans has the limits of all tenants. They change while requests run: a request uses the table that it finds.
type Plans struct {
	limits atomic.Pointer[map[string]throttle.Limit]
	others throttle.Limit
}

// NewPlans returns plans with one limit, until a table is stored.
func NewPlans(others throttle.Limit) *Plans {
	p := &Plans{others: others}
	p.Store(nil)
	return p
}

// Store replaces the table.
func (p *Plans) Store(rows []Plan) {
	limits := make(map[string]throttle.Limit, len(rows))
	for _, row := range rows {
		switch {
		case row.Suspended:
			limits[row.Tenant] = throttle.Suspended()
		case row.PerMinute == 0:
			limits[row.Tenant] = throttle.Unlimited()
		default:
			limits[row.Tenant] = throttle.PerMinute(row.PerMinute)
		}
	}
	p.limits.Store(&limits)
}

// Reload stores the table that load returns, again and again until the context ends. While load fails, the last table stays.
func (p *Plans) Reload(ctx context.Context, every time.Duration, load func(context.Context) ([]Plan, error)) {
	for tick := time.NewTicker(every); ctx.Err() == nil; {
		if rows, err := load(ctx); err == nil {
			p.Store(rows)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
		}
	}
}

// Limit returns a tenant's limit.
func (p *Plans) Limit(tenant string) throttle.Limit {
	if limit, ok := (*p.limits.Load())[tenant]; ok {
		return limit
	}
	return p.others
}

// Middleware limits all tenants by their plans. The name of the tenant must have been checked by your login.
func (p *Plans) Middleware(client *throttle.Client, tenant func(*http.Request) string) (func(http.Handler) http.Handler, error) {
	return throttlehttp.New(client, throttlehttp.Options{}, throttlehttp.Rule{
		Limiter: client.Rate("plan", p.others),
		Key:     tenant,
		Limit:   func(r *http.Request) throttle.Limit { return p.Limit(tenant(r)) },
	})
}
