package commands

import (
	"cmp"
	"slices"
	"strings"
)

// maxPolicyName bounds the name of a policy, in bytes.
const maxPolicyName = 64

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
	counts  *PolicyCounts // nil: nobody reads them
}

// PolicyCounts counts the calls of one policy. The host may read it while the policy is in force. It is laid out
// as shim_policy.
type PolicyCounts struct {
	Name  [maxPolicyName + 8]byte // a zero follows it
	Calls [Shadowed + 1]int64     // by Outcome
	Near  int64                   // the admitted calls that left at most a tenth of a clause's limit
}

// policyClause is one limit of a policy. Its limiter also decides.
type policyClause struct {
	kind    int16 // index in clauseKinds
	limit   int64
	limiter limiter
}

// Text returns the policies as one line. ParsePolicies reads the same policies from it.
func (p *Policies) Text() string { return p.text }

// count counts a call that isn't an error.
func (n *PolicyCounts) count(c *Call) {
	n.Calls[c.Outcome]++
	if c.Outcome != Admitted {
		return
	}
	for i := range c.Clauses {
		if r := &c.Clauses[i].Reply; r[2] <= r[1]/10 {
			n.Near++
			return
		}
	}
}

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
