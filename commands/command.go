package commands

import (
	"fmt"
	"strings"

	"gothrottle/funnel"
)

// ArgType is the type of an argument in COMMAND DOCS: the server's numbers.
type ArgType int32

const (
	ArgString  ArgType = 0
	ArgInteger ArgType = 1
	ArgKey     ArgType = 3
	ArgToken   ArgType = 6 // a keyword
	ArgOneOf   ArgType = 7 // one of the arguments Sub
	ArgBlock   ArgType = 8 // the arguments Sub, together
)

// Arg documents one argument.
type Arg struct {
	Name     string // of a token: the keyword
	Token    string // the keyword before the argument
	Type     ArgType
	Optional bool
	Multiple bool // may appear more than once
	Summary  string
	Bounds   string // for the reference; "" for a keyword
	Sub      []Arg
}

// Bounds of numbers, as the reference writes them.
var (
	limitBounds = fmt.Sprintf("1 to %d", maxLimit)
	yearsBound  = fmt.Sprintf("%d years", maxPeriod/(365*86400*funnel.Second))
	spanBounds  = "1 ms to " + yearsBound + " of 365 days"
)

// Arguments that more than one command takes.
var (
	argKey      = Arg{Name: "key", Type: ArgKey, Bounds: "any bytes", Summary: "The limiter."}
	argMaxBurst = Arg{Name: "max_burst", Type: ArgInteger, Bounds: fmt.Sprintf("0 to %d", maxLimit-1),
		Summary: "How many units beyond the first fit together: the limit is max_burst + 1."}
	argCount    = Arg{Name: "count", Type: ArgInteger, Bounds: limitBounds, Summary: "How many units drain per period."}
	argLimit    = Arg{Name: "limit", Type: ArgInteger, Bounds: limitBounds, Summary: "How many units fit together."}
	argPeriod   = Arg{Name: "period", Type: ArgString, Bounds: spanBounds, Summary: "A time, such as 60, 250ms, 5s, 15m, 1h or 1d."}
	argSeconds  = Arg{Name: "period", Type: ArgInteger, Bounds: "1 s to " + yearsBound, Summary: "A time in seconds."}
	argCalendar = Arg{Name: "period", Type: ArgString, Bounds: spanBounds + "; 1mo to " + fmt.Sprint(funnel.MaxMonths) + "mo",
		Summary: "A time, or with ALIGN a number of calendar months, such as 1mo."}
	argQuantity = Arg{Name: "quantity", Type: ArgInteger, Optional: true,
		Bounds:  fmt.Sprintf("%d to %d", -maxQuantity, maxQuantity),
		Summary: "Units to take, 1 if not given; 0 peeks, a negative number gives back."}
	argMS = Arg{Name: "MS", Type: ArgToken, Optional: true,
		Summary: "Times without a unit, and the times of the reply, are milliseconds."}
	argUpTo = Arg{Name: "UPTO", Type: ArgToken,
		Summary: "Take what is left, if that is less than the quantity."}
	argForce = Arg{Name: "FORCE", Type: ArgToken,
		Summary: "Charge the quantity, past the limit if need be."}
	argReserve = Arg{Name: "maxwait", Token: "RESERVE", Type: ArgString, Bounds: "0 to " + yearsBound,
		Summary: "Take a slot in the future, if it comes within this time."}
	argLockout = Arg{Name: "time", Token: "LOCKOUT", Type: ArgString, Bounds: "1 ms to " + yearsBound,
		Summary: "After a denial nothing is admitted for this time."}
	argRaise = Arg{Name: "RAISE", Type: ArgToken,
		Summary: "Make the usage at least the quantity, past the limit if need be."}
	argShare = Arg{Name: "weight", Token: "SHARE", Type: ArgInteger, Optional: true, Bounds: fmt.Sprintf("1 to %d", funnel.MaxWeight),
		Summary: "Use at most weight times what the clause before has left."}
	argClauseLockout = optional(argLockout)
	argThrottleMode  = mode(argUpTo, argForce, argReserve, argLockout, argRaise)
	argMode          = mode(argUpTo, argForce, argRaise)
	argForceAll      = Arg{Name: "FORCE", Type: ArgToken, Optional: true, Summary: "Charge all clauses, past their limits if need be."}
	argExact         = Arg{Name: "EXACT", Type: ArgToken, Optional: true,
		Summary: "Every microsecond with calls has an entry of its own, whatever the limit."}
	argAlign = Arg{Name: "offset", Token: "ALIGN", Type: ArgString, Optional: true,
		Bounds:  yearsBound + " either way; with months more than -28 and less than 31 days; -23:59 to +23:59",
		Summary: "Windows follow the calendar: a UTC offset, or a time by which they begin later than in UTC."}
)

func optional(a Arg) Arg {
	a.Optional = true
	return a
}

// mode is an optional argument: one of the arguments sub.
func mode(sub ...Arg) Arg {
	return Arg{Name: "mode", Type: ArgOneOf, Optional: true, Summary: "At most one of these.", Sub: sub}
}

// Command is one row of the table: what the server knows of a command, and what the host loads for it.
type Command struct {
	Name       string
	Summary    string
	Complexity string
	Since      string // the version of the module that brought it
	FurtherTip string // one more tip
	Flags      string // the server's command flags
	Arity      int    // as the server counts, with the name; negative: at least
	MinArity   int    // the least number of words, with the name; 0 if Arity says it
	MaxArity   int    // the greatest number of words, with the name; 0: no bound, the handler decides
	Args       []Arg
	State      Kind // what the only key holds, which is the first word; not set if there is a Plan
	NoKey      bool // the command has no key

	// Plan, if not nil, says which keys a call has and what they must hold. It appends to Call.Keys and Call.Clauses.
	// It runs before any key is opened, and unless OneKey also when the server asks for the keys of a call that does
	// not run. So it may use the words of the call and nothing else; with OneKey also the policies.
	Plan    func(*Call) ErrorCode
	OneKey  bool                  // with a Plan: the first word is the only key
	Handler func(*Call) ErrorCode // see Call for its contract
}

const writeFast = "write deny-oom fast"

// Tips ask clients and proxies not to cache replies, and that replies differ by time.
const Tips = "dont_cache nondeterministic_output"

// readOnly returns the row of a command's twin, which replies the same and changes nothing:
// the host opens its keys for reading and applies nothing.
func (c Command) readOnly() Command {
	c.Summary = "Replies what " + c.Name + " would reply; changes nothing."
	c.Name += "_RO"
	c.Flags = strings.Replace(c.Flags, "write deny-oom", "readonly", 1)
	return c
}

// RedisCell is the name that redis-cell uses, registered unless it is taken.
const RedisCell = "CL.THROTTLE"

// Syntax returns the command's synopsis, as documentation writes it.
func (c *Command) Syntax() string { return c.Name + synopsis(c.Args) }

// WrongArity is the error's text of a call with a number of words that the server lets pass and the command does not.
func (c *Command) WrongArity() string {
	return "ERR wrong number of arguments for '" + strings.ToLower(c.Name) + "' command: use " + c.Syntax()
}

func synopsis(args []Arg) (s string) {
	for _, a := range args {
		word := a.Name
		switch {
		case a.Type == ArgBlock:
			word = synopsis(a.Sub)[1:]
		case a.Type == ArgOneOf && a.Optional:
			word = alternatives(a.Sub)
		}
		if a.Token != "" {
			word = a.Token + " " + word
		}
		switch {
		case a.Multiple && a.Optional:
			word = "[" + word + " ...]"
		case a.Multiple:
			word += " [" + word + " ...]"
		case a.Optional:
			word = "[" + word + "]"
		}
		s += " " + word
	}
	return s
}

// alternatives returns the synopsis of arguments of which one may appear.
func alternatives(args []Arg) string {
	words := make([]string, len(args))
	for i := range args {
		words[i] = synopsis(args[i : i+1])[1:]
	}
	return strings.Join(words, " | ")
}

// InfoName returns the command's name as the fields of INFO have it: "throttle" of GO.THROTTLE,
// "cl_throttle" of CL.THROTTLE.
func (c *Command) InfoName() string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(c.Name), "go."), ".", "_")
}

// Writes reports whether the command may change its keys.
func (c *Command) Writes() bool { return strings.HasPrefix(c.Flags, "write") }

// Least returns the least number of words of a call, with the name.
func (c *Command) Least() int {
	return max(c.MinArity, c.Arity, -c.Arity)
}
