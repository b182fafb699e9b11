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

// newClient returns a client of a server in memory. In a program, give throttle.New a client of go-redis.
func newClient() *throttle.Client {
	client, err := throttle.New(throttletest.NewServer())
	if err != nil {
		panic(err)
	}
	return client
}

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	_, err := throttle.New(rdb)
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

func ExampleClient_Check() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, MaxRetries: -1})
	defer rdb.Close()
	client, _ := throttle.New(rdb, throttle.KeyPrefix("shop-"), throttle.Logger(quiet), throttle.Timeout(20*time.Millisecond))
	err := client.Check(background) // when the program starts
	fmt.Println(errors.Is(err, throttle.ErrUnavailable), errors.Is(err, throttle.ErrNoModule))
	fmt.Println(client.Close(), errors.Is(client.Check(background), throttle.ErrClosed))
	// Output:
	// true false
	// <nil> true
}

func ExampleClient_Policy() {
	server := throttletest.NewServer()
	_ = server.SetPolicies("api THROTTLE 9 10 1s, THROTTLE 99 1000 1h") // in the server's configuration
	client, _ := throttle.New(server)
	result, err := client.Policy("api").Allow(background, "bob")
	fmt.Println(result.Limit, result.Remaining, err)
	// Output: 10 9 <nil>
}

func ExampleClient_MonthlyQuota() {
	mails := newClient().MonthlyQuota("mails", 1000, time.UTC)
	part, _ := mails.AllowAtMost(background, "bob", 1200)
	_, _ = mails.Refund(background, "bob", 250) // could not be sent
	left, _ := mails.Peek(background, "bob")
	tooMany, _ := mails.AllowN(background, "bob", 1001)
	fmt.Println(part.Granted, left.Remaining, tooMany.RetryAfter == throttle.Never)
	// Output: 1000 250 true
}

func ExampleClient_SettleAll() {
	client := newClient()
	tokens, cents := client.ExactWindow("tokens", 1000, time.Hour), client.Quota("cents", 100, time.Hour)
	_, _ = client.All(background, tokens.Part("{bob}", 300), cents.Part("{bob}", 3))
	all, _ := client.SettleAll(background, tokens.Part("{bob}", 150), cents.Part("{bob}", -1)) // it was 450 for 2
	fmt.Println(all.Each[0].Remaining, all.Each[1].Remaining)
	// Output: 550 98
}

func ExampleBudget() {
	var sources []throttle.Source
	observe := func(e throttle.Event) { sources = append(sources, e.Result.Source) }
	client, _ := throttle.New(throttletest.NewServer(), throttle.Observe(observe), throttle.DenyCache(true))
	defer client.Close() // gives back what is left of budgets
	hot := client.Rate("hot", throttle.Per(1000, time.Second), throttle.Budget(100, time.Minute), throttle.Coalesce(true))
	for range 3 {
		_, _ = hot.Allow(background, "everyone")
	}
	once := client.Quota("once", 1, time.Hour)
	for range 3 {
		_, _ = once.Allow(background, "bob")
	}
	fmt.Println(sources[:3])
	fmt.Println(sources[3:])
	// Output:
	// [server server budget]
	// [server server denials]
}

func ExampleRate_Reserve() {
	mails := newClient().Rate("mails", throttle.PerMinute(1))
	_ = mails.WaitN(background, "bob", 1)
	slot, _ := mails.Reserve(background, "bob", 1, 2*time.Minute)
	fmt.Println(slot.Wait.Round(time.Second), slot.Cancel(background))
	hasty, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	err := mails.Wait(hasty, "bob")
	fmt.Println(errors.As(err, new(*throttle.DeniedError)))
	// Output:
	// 1m0s <nil>
	// true
}

func ExampleSlots_Acquire() {
	jobs := newClient().Slots("jobs", 1, 10*time.Second)
	first, _ := jobs.Lease(background, "thumbnails")
	time.AfterFunc(time.Millisecond, func() { _ = first.Close() })
	second, err := jobs.Acquire(background, "thumbnails")
	fmt.Println(second.Result.Allowed, err)
	<-first.Context().Done()
	fmt.Println(errors.Is(context.Cause(first.Context()), throttle.ErrLost), second.Close())
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleRate_Info() {
	info := newClient().Rate("api", throttle.PerMinute(60).Burst(10)).Info()
	fmt.Println(info.Name, info.Units, info.Span, info.Next, info.Err)
	// Output: api 10 10s 1s <nil>
}
