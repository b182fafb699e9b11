package commands

import "strings"

// ArgType is the type of an argument in COMMAND DOCS.
type ArgType int32

const (
	ArgKey ArgType = iota
	ArgInteger
	ArgToken // a keyword that stands for itself
)

// Arg documents one argument.
type Arg struct {
	Name     string // of a token: the keyword
	Type     ArgType
	Optional bool
	Summary  string
}

var argMS = Arg{Name: "MS", Type: ArgToken, Optional: true,
	Summary: "The period and the times of the reply are milliseconds."}

// Command is one row of the table: everything the server is told of a command, and
// what the host needs to load for it.
type Command struct {
	Name       string
	Summary    string
	Complexity string
	Since      string // the version of the module that brought it
	Flags      string // the server's command flags
	Arity      int    // as the server counts, with the name; negative: at least
	MinArity   int    // the least, with the name, if the server is told less; else 0
	MaxArity   int    // the most, with the name; 0 if options decide
	Args       []Arg
	Handler    func(*Call) Error
}

// Table lists every command. The first word after the name is the key.
var Table = []Command{
	throttle,
	clThrottle,
}

// RedisCell is the name that redis-cell uses, registered unless it is taken.
const RedisCell = "CL.THROTTLE"

// Syntax returns the command's synopsis, as documentation writes it.
func (c *Command) Syntax() string {
	s := c.Name
	for _, a := range c.Args {
		if a.Optional {
			s += " [" + a.Name + "]"
		} else {
			s += " " + a.Name
		}
	}
	return s
}

// Writes reports whether the command may change its keys.
func (c *Command) Writes() bool { return strings.HasPrefix(c.Flags, "write") }

// Least returns the least number of words of a call, with the name.
func (c *Command) Least() int {
	return max(c.MinArity, c.Arity, -c.Arity)
}
