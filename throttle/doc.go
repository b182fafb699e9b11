// Package throttle limits rates by a Redis or Valkey server with gothrottle loaded: one command, one round trip, one
// atomic decision.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
//	client, err := throttle.New(rdb, throttle.Options{})
//	result, err := client.Allow(ctx, "user:42", throttle.PerMinute(30).Burst(15))
//
// # Limits
//
// A [Limit] is a value: [PerMinute] and its like are rates (GCRA), [Window] is a sliding window, [Quota] a fixed window,
// [Policy] what the server's configuration says, [Slots] a number of concurrent holders. Verbs take any of them, as far
// as the verb makes sense for the limit; otherwise they return [ErrParams]. A denial is no error: see [Result].
//
// # When the server is away
//
// Each call ends within [Options].Timeout, and is sent once. A call whose reply is lost may have taken its units.
// [Options].OnUnavailable says what a verb returns then: an error, a Result that admits or denies, or the decision of a
// limiter in this process. [Result].Source and Cause tell who decided, and why it was not the server. After some failures
// in a row no call is sent for a pause. Then one call tries the server. If it fails, the next pause is longer.
//
// # Beyond one round trip
//
// Concurrent calls of Allow for one key and limit become one command. Its callers are granted units first come first
// served. The limit stays exact, and a hot key costs the server one command per round trip. Calls for several keys share
// pipelines when more than a few are under way. [Options].DenyCache and [Options].Budget go further and need no round trip at all;
// the documentation of [Budget] states what they may admit too much.
package throttle
