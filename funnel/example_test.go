package funnel_test

import (
	"fmt"
	"time"

	"gothrottle/funnel"
)

// A funnel that holds 16 and drains 30 a minute: 16 at once, then one every two seconds.
func Example() {
	params := funnel.ThrottleParams{
		Limit:    16,
		Rate:     funnel.Rate{Period: 60 * funnel.Second, Count: 30},
		Quantity: 1,
	}
	now := funnel.Nanos(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano())

	var state funnel.ThrottleState
	call := func() funnel.Verdict {
		next, verdict := funnel.Throttle(now, state, &params)
		if verdict.Change != funnel.Keep {
			state = next
		}
		return verdict
	}
	admitted := 0
	for verdict := call(); !verdict.Limited; verdict = call() {
		admitted++
	}
	fmt.Println("at once:", admitted)

	for range 3 {
		wait := call().RetryAfter
		now += wait
		fmt.Println("after", time.Duration(wait), "limited:", call().Limited)
	}

	now += 5 * funnel.Second
	params.Quantity = 0
	_, peek := funnel.Throttle(now, state, &params)
	fmt.Println("remaining:", peek.Remaining, "empty in:", time.Duration(peek.ResetAfter))
	// Output:
	// at once: 16
	// after 2s limited: false
	// after 2s limited: false
	// after 2s limited: false
	// remaining: 2 empty in: 27s
}
