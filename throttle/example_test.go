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
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Close()
	_, err = jobs.Lease(background, "thumbnails")
	var denied *throttle.DeniedError
	fmt.Println(errors.As(err, &denied), denied.Result.RetryAfter.Round(time.Minute))
	// Output: true 1m0s
}
