package examples

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
)

// hello answers every request that is admitted.
func hello(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) }

// withChi limits all routes of a chi router by what throttlehttp.New returned.
func withChi(limit func(http.Handler) http.Handler) http.Handler {
	router := chi.NewRouter()
	router.Use(limit)
	router.Get("/", hello)
	return router
}

// withEcho limits all routes of an echo server.
func withEcho(limit func(http.Handler) http.Handler) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(limit))
	e.GET("/", echo.WrapHandler(http.HandlerFunc(hello)))
	return e
}

// withGin limits all routes of a gin engine: its result is what http.ListenAndServe gets.
func withGin(limit func(http.Handler) http.Handler) http.Handler {
	engine := gin.New()
	engine.GET("/", gin.WrapF(hello))
	return limit(engine)
}

// GinMiddleware limits a group of gin's routes: engine.Group("/api", GinMiddleware(limit)).
func GinMiddleware(limit func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		admitted := false
		limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			admitted, c.Request = true, r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !admitted {
			c.Abort()
		}
	}
}
