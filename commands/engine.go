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
	engine   *Engine
	request  request
	limiters [MaxClauses]limiter // those of the call's clauses
	rooms    [MaxClauses]room
	shares   [MaxClauses]share
	short    uint32 // bit i: the share of clause i denies
	next     *scratch
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

// Host returns what answers the questions of the call's handler.
func (c *Call) Host() Host { return c.scratch.engine.host }

// UsePolicies makes these policies those of all calls from now on. No other engine may use them.
func (e *Engine) UsePolicies(p *Policies) { e.policies = p }

// CountDenials makes GO.TOP count in this table from now on, if it is not nil: see NewDenials.
func (e *Engine) CountDenials(t *funnel.Top) { e.denials = t }
