package throttlehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

func ExampleNew() {
	client, err := throttle.New(throttletest.NewServer()) // in a program: throttle.Open("redis://127.0.0.1:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	pages := client.Rate("pages", throttle.PerMinute(60).Burst(1))
	limit, err := throttlehttp.New(client, throttlehttp.Options{}, throttlehttp.Rule{Limiter: pages, Key: throttlehttp.ByHeader("X-Api-Key")})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a page") }))
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Printf("%d, RateLimit-Policy: %s, Retry-After: %q\n", w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, RateLimit-Policy: "pages";q=1;w=1, Retry-After: ""
	// 429, RateLimit-Policy: "pages";q=1;w=1, Retry-After: "1"
}
