package commands

import "gothrottle/funnel"

// Engine decides the calls of one host. It holds what they share: the policies, what GO.TOP counts, and the memory in which
// handlers work. One goroutine at a time may use it.
type Engine struct {
	host     Host
	policies *Policies   // in force
	denials  *funnel.Top // the keys of denied calls; nil if top-keys is 0
	unused   *scratch    // a list
}

// scratch is the memory in which one handler works, so that calls allocate nothing. Nothing in here outlives the handler.
type scratch struct {
	engine  *Engine
	request request
	limits  [MaxClauses]limit // those of the call's clauses
	rooms   [MaxClauses]room
	toClear int // how many lapsed leases the call may still remove
	next    *scratch
	lapses  [MaxClauses][maxLapses + 1]lapse // of each key
}

// NewEngine returns an engine without policies, for which GO.TOP counts nothing.
func NewEngine(h Host) *Engine {
	e := &Engine{host: h, policies: new(Policies)}
	e.release(&scratch{engine: e})
	return e
}

// acquire gives a call memory. A handler asks the server for entries by commands, and then another module can make the server
// run a further call: from a command filter, say. That call gets memory of its own. The memory of a handler that panics is lost.
func (e *Engine) acquire(c *Call) *scratch {
	s := e.unused
	if s == nil {
		s = &scratch{engine: e}
	}
	e.unused, c.scratch = s.next, s
	return s
}

func (e *Engine) release(s *scratch) { s.next, e.unused = e.unused, s }

// Plan runs the Plan of a command.
func (e *Engine) Plan(command *Command, c *Call) ErrorCode {
	s := e.acquire(c)
	err := command.Plan(c)
	e.release(s)
	return err
}

// Run runs the handler of a command and counts a denial. See Call for the contract.
func (e *Engine) Run(command *Command, c *Call) ErrorCode {
	s := e.acquire(c)
	err := command.Handler(c)
	e.release(s)
	if c.Outcome == Limited && err == NoError && e.denials != nil {
		e.countDenial(command, c)
	}
	return err
}

// UsePolicies makes these policies those of all calls from now on. No other engine may use them.
func (e *Engine) UsePolicies(p *Policies) { e.policies = p }

// CountDenials makes GO.TOP count in this table from now on, if it is not nil: see NewDenials.
func (e *Engine) CountDenials(t *funnel.Top) { e.denials = t }

// CountCalls makes policies count their calls, and returns the counters in the order of names. A policy that is in
// force under the same name hands on its counters.
func (e *Engine) CountCalls(p *Policies) []PolicyCounts {
	all := make([]PolicyCounts, len(p.byName))
	for i := range p.byName {
		policy := &p.byName[i]
		copy(all[i].Name[:], policy.name)
		if old := e.policies.find(policy.name + ":"); old != nil && old.counts != nil {
			all[i] = *old.counts
		}
		policy.counts = &all[i]
	}
	return all
}

// countDenial counts the keys of limited clauses, each key once. The clauses of one key are neighbours.
func (e *Engine) countDenial(command *Command, c *Call) {
	if !command.Writes() {
		return
	}
	if c.Shape != Nested {
		e.denials.Count(int(c.DB), c.Args[c.Keys[0].Word])
		return
	}
	last := int32(-1)
	for i := range c.Clauses {
		cl := &c.Clauses[i]
		if cl.Reply[0] != 0 && cl.Key != last {
			last = cl.Key
			e.denials.Count(int(c.DB), c.Args[c.Keys[last].Word])
		}
	}
}
