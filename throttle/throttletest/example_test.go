package throttletest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

func Example() {
	server := throttletest.NewServer()
	client, err := throttle.New(server, throttle.FailClosed())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	hourly := client.Rate("hourly", throttle.PerHour(1))
	allow := func() {
		result, err := hourly.Allow(context.Background(), "bob")
		fmt.Println(result.Allowed, result.Source, err)
	}
	allow()
	allow()
	server.Advance(time.Hour)
	allow()
	server.Fail(errors.New("connection refused"))
	allow()
	// Output:
	// true server <nil>
	// false server <nil>
	// true server <nil>
	// false failed-closed <nil>
}
