package throttle_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// newClient returns a client of a server in memory. In a program, give throttle.New a client of go-redis.
func newClient() *throttle.Client {
	client, err := throttle.New(throttletest.NewServer(), throttle.Options{})
	if err != nil {
		panic(err)
	}
	return client
}

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	_, err := throttle.New(rdb, throttle.Options{})
	fmt.Println(errors.Is(err, throttle.ErrParams)) // without ContextTimeoutEnabled go-redis ignores time limits
	// Output: true
}

func ExampleRate_Allow() {
	login := newClient().Rate("login", throttle.PerMinute(30).Burst(2))
	for range 3 {
		result, err := login.Allow(background, "bob") // the key is login:bob
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Allowed, result.Remaining, result.RetryAfter.Round(time.Second))
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 2s
}

func ExampleRate_Reset() {
	login := newClient().Rate("login", throttle.PerMinute(1).Lockout(15*time.Minute))
	_, _ = login.Allow(background, "bob")
	locked, _ := login.Allow(background, "bob")
	_ = login.Reset(background, "bob")
	free, _ := login.Allow(background, "bob")
	fmt.Println(locked.Allowed, free.Allowed)
	// Output: false true
}

func ExampleRate_With() {
	free := newClient().Rate("api", throttle.PerHour(10))
	paid := free.With(throttle.PerHour(1000)) // the same keys with another limit
	before, _ := free.AllowN(background, "bob", 10)
	after, _ := paid.Allow(background, "bob")
	fmt.Println(before.Remaining, after.Remaining)
	// Output: 0 989
}

func ExampleClient_All() {
	client := newClient()
	rate, spend := client.Rate("rate", throttle.PerSecond(10)), client.AlignedQuota("spend", 1000, 24*time.Hour, time.UTC)
	for range 3 {
		result, _ := client.All(background, rate.Part("{bob}", 1), spend.Part("{bob}", 400))
		fmt.Println(result.Allowed, result.Decider, result.Each[1].Remaining)
	}
	// Output:
	// true 0 600
	// true 0 200
	// false 1 200
}

func ExampleWindow_Settle() {
	tokens := newClient().Window("tokens", 1000, time.Hour)
	_, _ = tokens.AllowN(background, "bob", 300)       // an estimate
	result, _ := tokens.Settle(background, "bob", 150) // it was 450
	fmt.Println(result.Remaining)
	// Output: 550
}

func ExampleFailOpen() {
	server := throttletest.NewServer()
	client, _ := throttle.New(server, throttle.Options{Logger: quiet}, throttle.FailOpen())
	defer client.Close()
	pages, login := client.Rate("pages", throttle.PerHour(4)), client.Rate("login", throttle.PerHour(4), throttle.FailClosed())
	server.Fail(errors.New("connection refused"))
	for _, limiter := range []throttle.Allower{pages, login} {
		result, _ := limiter.Allow(background, "bob")
		fmt.Println(result.Allowed, result.Source)
	}
	// Output:
	// true failed-open
	// false failed-closed
}

func ExampleSlots_Lease() {
	jobs := newClient().Slots("jobs", 1, time.Minute)
	lease, err := jobs.Lease(background, "thumbnails")
	defer lease.Close() // even if it is nil
	fmt.Println(err)
	_, err = jobs.Lease(background, "thumbnails")
	var denied *throttle.DeniedError
	fmt.Println(errors.As(err, &denied), denied.Result.RetryAfter.Round(time.Minute))
	// Output:
	// <nil>
	// true 1m0s
}
