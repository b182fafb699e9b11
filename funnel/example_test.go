package funnel_test

import (
	"fmt"
	"time"

	"gothrottle/funnel"
)

// A funnel that holds 16 and drains 30 a minute: 16 at once, then one every two seconds.
func Example() {
	const limit = 16
	rate := funnel.Rate{Period: int64(time.Minute), Count: 30}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()

	var state funnel.State
	call := func() funnel.Verdict {
		next, verdict := funnel.Throttle(now, state, limit, rate, 1)
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
		wait := time.Duration(call().RetryAfter)
		now += int64(wait)
		fmt.Println("after", wait, "limited:", call().Limited)
	}

	now += int64(5 * time.Second)
	_, peek := funnel.Throttle(now, state, limit, rate, 0)
	fmt.Println("remaining:", peek.Remaining, "empty in:", time.Duration(peek.ResetAfter))
	// Output:
	// at once: 16
	// after 2s limited: false
	// after 2s limited: false
	// after 2s limited: false
	// remaining: 2 empty in: 27s
}
