// Package oracle holds slow, exact models of the limiters in package funnel. Tests compare
// the limiters with them; no product code imports this package.
//
// A model shares no algorithm with package funnel. It takes funnel's parameter types and returns funnel's verdicts; it
// keeps its state inside. Parameters must lie within the bounds that package funnel documents.
//
// Every model has these methods:
//
//   - Call decides one call, applies it and returns the verdict, with RetryAfter set.
//   - Clone returns a copy, for a call that must leave the original as it is.
//   - Void reports whether nothing is in use and no lockout is in force, so that a server needs no key.
//
// The zero value of every model has nothing in use. Two goroutines must not use one model at the same time.
package oracle
