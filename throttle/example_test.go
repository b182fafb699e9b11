package throttle_test

import (
	"errors"
	"fmt"
	"time"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// newClient returns a client of a server in memory. In a program, give throttle.New a client of go-redis.
func newClient() *throttle.Client {
	client, err := throttle.New(throttletest.NewServer())
	if err != nil {
		panic(err)
	}
	return client
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
	rate, spend := client.Rate("rate", throttle.PerSecond(10)), client.Quota("spend", 1000, 24*time.Hour, throttle.In(time.UTC))
	for range 3 {
		result, _ := client.All(background, rate.Part("{bob}", 1), spend.Part("{bob}", 400))
		fmt.Println(result.Allowed, result.Decider, result.Each[1].Remaining)
	}
	// Output:
	// true 0 600
	// true 0 200
	// false 1 200
}

func ExamplePart_Share() {
	client := newClient()
	shared, tenant := client.Rate("m", throttle.PerMinute(100)), client.Window("tenant", 1_000_000, 30*time.Second)
	ask := func(name string, n int64) bool {
		result, _ := client.All(background, shared.Part("{m}", n), tenant.Part("{m}"+name, n).Share(1))
		return result.Allowed
	}
	fmt.Println(ask("bob", 50), ask("bob", 10), ask("ann", 10)) // bob must leave as much as he uses
	// Output: true false true
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
	client, _ := throttle.New(server, throttle.Logger(quiet), throttle.FailOpen())
	defer client.Close()
	pages, login := client.Rate("pages", throttle.PerHour(4)), client.Rate("login", throttle.PerHour(4), throttle.FailClosed())
	server.Fail(errors.New("connection refused"))
	for _, limiter := range []throttle.Rate{pages, login} {
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

func ExampleBudget() {
	var sources []string
	observe := func(e throttle.Event) { sources = append(sources, e.Result.Source) }
	client, _ := throttle.New(throttletest.NewServer(), throttle.Observe(observe))
	defer client.Close() // gives back what is left of budgets
	hot := client.Rate("hot", throttle.PerSecond(1000), throttle.Budget(100, time.Minute))
	for range 3 {
		_, _ = hot.Allow(background, "everyone")
	}
	fmt.Println(sources)
	// Output: [server server budget]
}
