package examples

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// One middleware limits tenants by a table that is reloaded while requests run. Usage stays when a plan changes.
func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := throttletest.New(t)
		plans := NewPlans(throttle.PerMinute(1))
		limit, err := plans.Middleware(client, func(r *http.Request) string { return r.Header.Get("X-Tenant") })
		require.NoError(t, err)
		handler := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		served := func(tenant string, requests int) (n int) {
			for range requests {
				r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
				r.Header.Set("X-Tenant", tenant)
				if handler.ServeHTTP(w, r); w.Code == http.StatusOK {
					n++
				}
			}
			return n
		}
		require.Equal(t, 1, served("new", 9))
		tables := [][]Plan{{{Tenant: "ann", PerMinute: 3}, {Tenant: "staff"}, {Tenant: "late", Suspended: true}}, nil, {{Tenant: "ann", PerMinute: 5}, {Tenant: "late", PerMinute: 2}}}
		ctx, cancel := context.WithCancel(t.Context())
		go plans.Reload(ctx, time.Second, func(context.Context) (table []Plan, err error) {
			if table, tables = tables[0], tables[1:]; table == nil {
				err = errors.New("the database is away")
			}
			return table, err
		})
		synctest.Wait()
		before := server.Calls()
		require.Equal(t, []int{9, 0}, []int{served("staff", 9), served("late", 9)})
		require.Equal(t, before, server.Calls())
		require.Equal(t, 3, served("ann", 9))
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, []int{0, 9}, []int{served("ann", 9), served("staff", 9)}) // the last table stays
		time.Sleep(time.Second)
		cancel()
		require.Equal(t, []int{2, 2}, []int{served("ann", 9), served("late", 9)}) // 5 - 3, but for what has drained
	})
}
