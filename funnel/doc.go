// Package funnel holds the decisions of gothrottle: pure functions from
// (now, state, parameters) to (next state, verdict).
//
// It never reads a clock, never takes a lock and never touches a server. Every
// function is safe for concurrent use because none has state; [Clock] is the one
// type that remembers something and belongs to one goroutine.
//
// # Words
//
// The same words are used in code, commands, error texts and documentation:
//
//   - limit: how many units fit at once.
//   - max_burst: limit - 1, redis-cell's word.
//   - count per period: the sustained rate.
//   - quantity: how many units one call asks for; 0 peeks, negative refunds.
//   - remaining: whole units left after the call, 0 to limit.
//   - retry_after: how long until the same call would be admitted.
//   - reset_after: how long until nothing is in use.
//   - limited: the call was not admitted.
//
// A "funnel" is a leaky bucket used as a meter. GCRA, the generic cell rate
// algorithm (ITU-T I.371, Annex A), is the same thing kept as a single time.
//
// # Numbers
//
// Instants are nanoseconds since the Unix epoch, lengths of time nanoseconds.
// All arithmetic is exact: products are 128 bits wide, and what does not divide
// is kept as a fraction (see [Rate]). There are no floats. Where a result cannot
// be represented it saturates; it never wraps.
package funnel
