package examples

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// GinMiddleware limits a group of gin's routes by what throttlehttp.New returned: engine.Group("/api", GinMiddleware(limit)).
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
