package examples

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// GinMiddleware limits a group of gin's routes by what throttlehttp.New returned: engine.Group("/api", GinMiddleware(limit)).
func GinMiddleware(limit func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		admitted := false
		limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admitted, c.Request, c.Writer = true, r, charged{c.Writer, w}
			c.Next()
			w.WriteHeader(c.Writer.Status()) // of a response without a body
		})).ServeHTTP(c.Writer, c.Request)
		if !admitted {
			c.Abort()
		}
	}
}

// charged lets a Rule's Charge see the response.
type charged struct {
	gin.ResponseWriter
	limit http.ResponseWriter
}

func (w charged) Write(p []byte) (int, error) {
	w.limit.WriteHeader(w.Status())
	return w.limit.Write(p)
}

func (w charged) WriteString(s string) (int, error) { return w.Write([]byte(s)) }
