package commands

import "strings"

// ArgType is the type of an argument in COMMAND DOCS.
type ArgType int32

const (
	ArgKey ArgType = iota
	ArgInteger
	ArgString
	ArgToken // a keyword that stands for itself
	ArgBlock // the arguments Sub, together
)

// Arg documents one argument.
type Arg struct {
	Name     string // of a token: the keyword
	Token    string // a keyword that stands before the argument
	Type     ArgType
	Optional bool
	Multiple bool // may stand more than once
	Summary  string
	Sub      []Arg
}

// What more than one command takes.
var (
	argKey      = Arg{Name: "key", Type: ArgKey, Summary: "The limiter."}
	argMaxBurst = Arg{Name: "max_burst", Type: ArgInteger,
		Summary: "How many units beyond the first fit at once: the limit is max_burst + 1."}
	argCount    = Arg{Name: "count", Type: ArgInteger, Summary: "How many units drain per period."}
	argLimit    = Arg{Name: "limit", Type: ArgInteger, Summary: "How many units fit at once."}
	argPeriod   = Arg{Name: "period", Type: ArgInteger, Summary: "In seconds, or milliseconds with MS."}
	argQuantity = Arg{Name: "quantity", Type: ArgInteger, Optional: true,
		Summary: "Units to take, 1 if not given; 0 peeks, a negative number gives back."}
	argMS = Arg{Name: "MS", Type: ArgToken, Optional: true,
		Summary: "The period and the times of the reply are milliseconds."}
	argUpTo = Arg{Name: "UPTO", Type: ArgToken, Optional: true,
		Summary: "Take what is left, if that is less than the quantity."}
)

// Command is one row of the table: everything the server is told of a command, and
// what the host needs to load for it.
type Command struct {
	Name        string
	Summary     string
	Complexity  string
	Since       string // the version of the module that brought it
	Flags       string // the server's command flags
	Arity       int    // as the server counts, with the name; negative: at least
	MinArity    int    // the least, with the name, if the server is told less; else 0
	MaxArity    int    // the most, with the name; 0 if options decide
	WordsPerKey int    // 0: the first word is the key; else it is the number of keys that follow, and this many words per key come after them
	Args        []Arg
	State       Kind // what the keys hold
	Handler     func(*Call) Error
}

const writeFast = "write deny-oom fast"

// Table lists every command.
var Table = []Command{
	throttle,
	clThrottle,
	window,
	quota,
	mthrottle,
	lease,
	release,
	throttleRO,
	windowRO,
	quotaRO,
}

// readOnly returns the row of a command's twin, which replies the same and changes
// nothing: the host opens its keys for reading and applies nothing.
func (c Command) readOnly(summary string) Command {
	c.Name += "_RO"
	c.Summary = summary
	c.Flags = "readonly fast"
	return c
}

// RedisCell is the name that redis-cell uses, registered unless it is taken.
const RedisCell = "CL.THROTTLE"

// Syntax returns the command's synopsis, as documentation writes it.
func (c *Command) Syntax() string { return c.Name + synopsis(c.Args) }

func synopsis(args []Arg) (s string) {
	for _, a := range args {
		word := a.Name
		if a.Token != "" {
			word = a.Token + " " + a.Name
		}
		if a.Type == ArgBlock {
			word = synopsis(a.Sub)[1:]
		}
		if a.Multiple {
			word += " [" + word + " ...]"
		}
		if a.Optional {
			word = "[" + word + "]"
		}
		s += " " + word
	}
	return s
}

// Writes reports whether the command may change its keys.
func (c *Command) Writes() bool { return strings.HasPrefix(c.Flags, "write") }

// Least returns the least number of words of a call, with the name.
func (c *Command) Least() int {
	return max(c.MinArity, c.Arity, -c.Arity)
}
