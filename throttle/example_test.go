package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	_, err := throttle.New(rdb, throttle.Options{})
	fmt.Println(errors.Is(err, throttle.ErrParams)) // no time limit holds without ContextTimeoutEnabled
	// Output: true
}

func ExampleClient_Allow() {
	client, _ := throttle.New(throttletest.NewServer(), throttle.Options{}) // in a program: a client of go-redis
	defer client.Close()
	for range 3 {
		result, err := client.Allow(context.Background(), "user:42", throttle.PerMinute(30).Burst(2))
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
	client, _ := throttle.New(throttletest.NewServer(), throttle.Options{})
	defer client.Close()
	for range 3 {
		result, _ := client.All(context.Background(),
			throttle.Take{Key: "{bob}:rate", Limit: throttle.PerSecond(10), N: 1},
			throttle.Take{Key: "{bob}:spend", Limit: throttle.Quota(1000, 24*time.Hour).Align(0), N: 400})
		fmt.Println(result.Allowed, result.Decider, result.Each[1].Remaining)
	}
	// Output:
	// true 0 600
	// true 0 200
	// false 1 200
}

func ExampleClient_Settle() {
	client, _ := throttle.New(throttletest.NewServer(), throttle.Options{})
	defer client.Close()
	tokens := throttle.Window(1000, time.Hour)
	_, _ = client.AllowN(context.Background(), "tokens:bob", tokens, 300)       // an estimate
	result, _ := client.Settle(context.Background(), "tokens:bob", tokens, 150) // it was 450
	fmt.Println(result.Remaining)
	// Output: 550
}

func ExampleOptions_onUnavailable() {
	server := throttletest.NewServer()
	client, _ := throttle.New(server, throttle.Options{OnUnavailable: throttle.LimitLocally, LocalShare: 0.5, Logger: quiet})
	defer client.Close()
	server.Fail(errors.New("connection refused"))
	for range 3 {
		result, _ := client.Allow(context.Background(), "user:42", throttle.PerHour(4))
		fmt.Println(result.Allowed, result.Source)
	}
	// Output:
	// true local
	// true local
	// false local
}

func ExampleClient_Lease() {
	client, _ := throttle.New(throttletest.NewServer(), throttle.Options{})
	defer client.Close()
	slots := throttle.Slots(1, time.Minute)
	lease, _, err := client.Lease(context.Background(), "jobs", slots)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, result, _ := client.Lease(context.Background(), "jobs", slots)
	fmt.Println(result.Allowed)
	_ = lease.Close()
	_, result, _ = client.Lease(context.Background(), "jobs", slots)
	fmt.Println(result.Allowed)
	// Output:
	// false
	// true
}
