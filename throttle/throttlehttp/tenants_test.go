package throttlehttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

// A tenant that is alone leaves as much to others as it has, and they get their share.
func TestMiddleware_tenants(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		shared := throttlehttp.Rule{Limiter: c.Rate("api", throttle.PerHour(4)), Key: fixed}
		tenant := throttlehttp.Rule{Limiter: c.Window("tenant", 100, time.Hour), Share: 1, Key: func(r *http.Request) string { return r.Header.Get("X-Tenant") }}
		h := serve(t, c, throttlehttp.Options{}, shared, tenant)
		var got []int
		for _, name := range []string{"a", "a", "a", "b"} {
			got = append(got, get(h, func(r *http.Request) { r.Header.Set("X-Tenant", name) }).Code)
		}
		require.Equal(t, []int{200, 200, 429, 200}, got)
		_, err := throttlehttp.New(c, throttlehttp.Options{}, tenant, shared)
		require.ErrorContains(t, err, "a share needs a rule before it")
	})
}
