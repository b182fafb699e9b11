package examples

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

// Behind each framework two requests pass, and the third gets a 429 with the headers. The handler does not see it.
func TestHTTP_frameworks(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	for name, serve := range map[string]func(func(http.Handler) http.Handler) http.Handler{
		"chi": withChi, "echo": withEcho, "gin": withGin,
		"a group of gin": func(limit func(http.Handler) http.Handler) http.Handler {
			engine := gin.New()
			engine.Group("/", GinMiddleware(limit)).GET("/", gin.WrapF(hello))
			return engine
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := throttletest.New(t, throttle.Options{Logger: quiet}, throttle.Timeout(patient))
			limit, err := throttlehttp.New(client, throttlehttp.Options{}, throttlehttp.Rule{Limiter: client.Rate("t", throttle.PerHour(2))})
			require.NoError(t, err)
			server := httptest.NewServer(serve(limit))
			t.Cleanup(server.Close)
			for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
				response, err := http.Get(server.URL)
				require.NoError(t, err)
				body := make([]byte, 1000)
				n, _ := response.Body.Read(body)
				require.NoError(t, response.Body.Close())
				require.Equal(t, want, response.StatusCode, "request %d", i)
				require.Equal(t, `"t";q=2;w=3600`, response.Header.Get("RateLimit-Policy"))
				if want == http.StatusOK {
					require.Equal(t, "hello\n", string(body[:n]))
					continue
				}
				require.Equal(t, "1800", response.Header.Get("Retry-After"))
				require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
				require.NotContains(t, string(body[:n]), "hello")
			}
		})
	}
}
