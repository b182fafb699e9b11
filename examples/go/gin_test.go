package examples

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

// Behind each framework of docs/go.md two requests pass, and the third gets a 429 with the headers. The handler does not see it.
// Charge sees the responses.
func TestHTTP_frameworks(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	for name, serve := range map[string]func(func(http.Handler) http.Handler) http.Handler{
		"chi": func(limit func(http.Handler) http.Handler) http.Handler {
			router := chi.NewRouter()
			router.Use(limit)
			router.Get("/", hello)
			return router
		},
		"echo": func(limit func(http.Handler) http.Handler) http.Handler {
			e := echo.New()
			e.Use(echo.WrapMiddleware(limit))
			e.GET("/", echo.WrapHandler(hello))
			return e
		},
		"gin": func(limit func(http.Handler) http.Handler) http.Handler {
			engine := gin.New()
			engine.GET("/", gin.WrapH(hello))
			return limit(engine)
		},
		"a group of gin": func(limit func(http.Handler) http.Handler) http.Handler {
			engine := gin.New()
			engine.Group("/", GinMiddleware(limit)).GET("/", gin.WrapH(hello))
			return engine
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := throttletest.New(t, throttle.Logger(quiet), throttle.Timeout(patient))
			var seen throttlehttp.Response
			limit, err := throttlehttp.New(client, throttlehttp.Options{}, throttlehttp.Rule{Limiter: client.Rate("t", throttle.PerHour(2)),
				Charge: func(_ *http.Request, r throttlehttp.Response) int64 {
					seen = r
					return 1
				}})
			require.NoError(t, err)
			handler, answer := serve(limit), httptest.NewRecorder()
			for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
				answer = httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
				require.Equal(t, want, answer.Code)
				require.Equal(t, want == http.StatusOK, answer.Body.String() == "hello\n")
				require.Equal(t, `"t";q=2;w=3600`, answer.Header().Get("RateLimit-Policy"))
			}
			require.Equal(t, []int64{http.StatusOK, 6}, []int64{int64(seen.Status), seen.Bytes})
			require.Equal(t, "1800", answer.Header().Get("Retry-After"))
			require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
		})
	}
}
