package commands

import (
	"cmp"
	"slices"
	"strings"
)

// Policies are the limits that the configuration gives to keys. The zero value has no policies.
type Policies struct {
	text   string   // what ParsePolicies read, in its canonical form
	byName []Policy // sorted by name
}

// Policy is the limits of all keys whose names begin with the policy's name and a colon.
type Policy struct {
	name    string
	shadow  bool // only the inner replies show a denial
	clauses []policyClause
}

// policyClause is one limit of a policy. Its limiter also decides.
type policyClause struct {
	kind    int32 // index in clauseKinds
	limit   int64
	limiter limiter
}

// Text returns the policies as one line. ParsePolicies reads the same policies from it.
func (p *Policies) Text() string { return p.text }

// find returns the policy of a key, or nil if there is none. The part of the key before the first
// colon is the policy's name.
func (p *Policies) find(key string) *Policy {
	colon := strings.IndexByte(key, ':')
	if colon < 0 {
		return nil
	}
	i, found := slices.BinarySearchFunc(p.byName, key[:colon],
		func(policy Policy, name string) int { return cmp.Compare(policy.name, name) })
	if !found {
		return nil
	}
	return &p.byName[i]
}

// policies are those in force.
var policies = new(Policies)

// UsePolicies makes these policies those of all calls from now on.
func UsePolicies(p *Policies) { policies = p }
