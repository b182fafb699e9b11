// Package funnel holds the decisions of gothrottle: pure functions from
// (now, state, parameters) to (next state, verdict).
//
// No function here reads a clock, takes a lock or touches a server. Every function is safe for concurrent use, because
// no function keeps state. Only [Clock] and [Top] are types with state; one goroutine at a time owns each.
//
// This package isn't an API: it may change with every version. Programs use the commands.
//
// # Words
//
// Code, commands, error texts and documentation use the same words:
//
//   - limit: how many units fit together.
//   - max_burst: limit - 1, redis-cell's word.
//   - count per period: the sustained rate.
//   - quantity: how many units one call asks for. 0 peeks, a negative quantity refunds.
//   - remaining: whole units left after the call, 0 to limit.
//   - retry_after: how long until the same call would be admitted; after a partial grant, how
//     long until one more unit would be.
//   - reset_after: how long until nothing is in use.
//   - limited: the call was not admitted.
//   - cell: one GCRA limiter; a hash holds one or more of them.
//
// A "funnel" is a leaky bucket used as a meter. GCRA, the generic cell rate algorithm
// (ITU-T I.371, Annex A), is the same meter kept as a single time.
//
// # Keys denied most often
//
// [Top] decides nothing. It counts denials by key in a table of fixed size, and it reports for each count by how much
// the count may be too high. The unit is one denial: a call that asks for five units and is limited counts once.
//
// # Units of time
//
// [Nanos] and [Micros] are two types, so that one cannot be passed for the other. GCRA decides in nanoseconds. Windows,
// quotas, leases and the clock count microseconds, because the score of a sorted set holds a microsecond exactly.
//
// # Numbers
//
// All arithmetic is exact: products are 128 bits wide, and a remainder is kept as a fraction (see [Rate]). There are no
// floats. A result that cannot be represented saturates; no result wraps.
package funnel
