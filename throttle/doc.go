// Package throttle limits rates with a Redis or Valkey server that has gothrottle loaded: one command, one round trip,
// one atomic decision.
//
//	client, err := throttle.Open("redis://127.0.0.1:6379")
//	login := client.Rate("login", throttle.PerMinute(5).Lockout(15*time.Minute))
//	result, err := login.Allow(ctx, "bob") // the key is login:bob
//
// # Limiters
//
// Make a limiter once, with a name, a limit and its [Option] values. [Client.Rate] drains at a rate (GCRA),
// [Client.Window] is a sliding window, [Client.Quota] a fixed window, [Client.Policy] has its limits in the server's
// configuration, [Client.Slots] is a number of concurrent holders. Each method takes the part of the key after the
// limiter's name. A denial isn't an error: see [Result].
//
// # When the server is unavailable
//
// Each call ends within its [Timeout] and is sent once. A call whose reply is lost may have taken its units. It returns
// an error, or the decision of [FailOpen], [FailClosed] or [FailLocal]. [Result].Source and Cause say who decided and
// why the server did not.
//
// Concurrent calls of Allow for one key become one command, whose units go first come, first served; those of a Policy
// or with a Lockout never. Calls for several keys share pipelines when more than a few are under way. [DenyCache] and
// [Budget] save round trips.
package throttle
