package commands

import (
	"testing"

	"gothrottle/funnel"
)

// Store is the keyspace of this package's tests, for tests of packages that import this one.
type Store = store

// NewStore returns an empty store. The policies are those of the samples.
func NewStore(t testing.TB) *Store { return newStore(t) }

// Told runs a command line at a time and returns the reply as text.
func (s *store) Told(now funnel.Micros, line string) string {
	s.now, TheHost = now, s
	s.setPolicies(samplePolicies)
	return s.told(line)
}

// Rubbish fills the room of a new call with what no handler may read.
func Rubbish(c *Call) { *c = *poison.poisonedCall(nil) }

var poison store // remembers the clauses of the call before
