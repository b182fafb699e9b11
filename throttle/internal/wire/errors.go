package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The errors of package wire, which explains them.
var (
	ErrUnavailable = errors.New("throttle: the server is unavailable")
	ErrNoModule    = errors.New("throttle: the server has not loaded gothrottle")
	errNoScript    = fmt.Errorf("%w: it cannot run gothrottle's script", ErrNoModule)
	ErrParams      = errors.New("throttle: bad parameters")
	ErrClosed      = fmt.Errorf("throttle: %w", redis.ErrClosed)
	ErrReply       = errors.New("throttle: unexpected reply")
	errPaused      = errors.New("recent calls failed, and the client will try again soon")
)

// Unsent reports whether an error says that the server never got the call.
func Unsent(err error) bool {
	var far *net.OpError
	return errors.Is(err, errPaused) || errors.As(err, &far) && far.Op == "dial"
}

// outages are the beginnings of errors that pass, and of those that the server has for every key: no other key would be decided
// either. An ERR is else a fault of the program, or of the set-up, and an error without it one of this key.
var outages = strings.Split("LOADING|OOM|MISCONF|BUSY|READONLY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|NOAUTH|WRONGPASS|ERR max number of clients|"+
	"ERR internal error|ERR a forked process", "|")

// noScript is what servers say that do not run the script.
var noScript = regexp.MustCompile("(?i)^(unknown command ['`]eval|this server refuses TIME)")

func hasPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// meaning returns what an error reply means.
func meaning(text string) error {
	own, found := strings.CutPrefix(text, "ERR ")
	if rest, of := strings.CutPrefix(own, "clause "); of {
		_, own, _ = strings.Cut(rest, ": ")
	}
	switch {
	case hasPrefix(text, outages) || hasPrefix("ERR "+own, outages):
		return ErrUnavailable
	case found && noScript.MatchString(own):
		return errNoScript
	case found && strings.HasPrefix(own, "unknown command"):
		return ErrNoModule
	case found || strings.HasPrefix(text, "WRONGTYPE") || strings.HasPrefix(text, "CROSSSLOT"):
		return ErrParams
	}
	return ErrUnavailable
}

// failsAll reports whether an ErrUnavailable says that calls for other keys would fail, too.
func failsAll(err error) bool {
	var reply redis.Error
	return !errors.As(err, &reply) || hasPrefix(reply.Error(), outages)
}

// Classify wraps an error of go-redis so that errors.Is finds its kind.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	var reply redis.Error // after the return for nil, because reply is allocated
	switch {
	case errors.Is(err, ErrUnavailable) || errors.Is(err, ErrReply) || errors.Is(err, ErrClosed) || errors.Is(err, ErrNoModule):
		return err
	case errors.As(err, &reply):
		return fmt.Errorf("%w: %w", meaning(reply.Error()), err)
	case errors.Is(err, redis.ErrClosed): // go-redis has dropped a node, or was closed: this client is not
		return fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	// Everything else happened on the way: a time-out, a refused or broken connection, an exhausted pool.
	var network net.Error
	if errors.As(err, &network) && network.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w (%w)", ErrUnavailable, err, context.DeadlineExceeded)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// advice says what to do about error replies that begin like this, after ERR. They don't go away by themselves.
var advice = [...][2]string{
	{"unknown command 'EVAL", "load gothrottle into every server (docs/install.md): this one runs no scripts"},
	{"this server refuses TIME", "load gothrottle into every server (docs/install.md)"},
	{"unknown command", "load gothrottle into every server (docs/install.md), or use the option Script where it can't be loaded (docs/managed.md). Client.Check notices this when a program starts"},
	{"no policy ", "add the policy to gothrottle.policies of every server (docs/commands.md)"},
	{"DB index is out of range", "correct the number of the database in the server's address"},
	{"This instance has cluster support disabled", "this is a single server: connect without a cluster client, in an address without addr="},
	{"CROSSSLOT", "give all keys of one call one hash tag, as in {site}bob and {site} (docs/go.md)"},
	{"WRONGTYPE", "use another KeyPrefix: another program has a key of this name"},
	{"NOPERM", "permit the command and the key to this user of the server (SECURITY.md; of a script, docs/managed.md)"},
	{"", "correct the limit or the call (docs/commands.md)"},
}

// adviceEvery is how much time there is at least from one record of a limiter and a cause to the next.
const adviceEvery = time.Minute

// complain logs what to do about a call that fails until somebody changes the set-up. A missing module is one cause for all
// limiters.
func (c *Conn) complain(cmd *call, err error) {
	var reply redis.Error
	all := errors.Is(err, ErrNoModule)
	if !errors.As(err, &reply) || !all && !errors.Is(err, ErrParams) && !strings.HasPrefix(reply.Error(), "NOPERM") {
		return
	}
	text, name := strings.TrimPrefix(reply.Error(), "ERR "), cmd.within.by.Name
	i := slices.IndexFunc(advice[:], func(row [2]string) bool { return strings.HasPrefix(text, row[0]) })
	of := logged{name, i}
	if all {
		of.name = ""
	}
	c.log(of, "throttle: calls fail until the set-up is changed", "name", name, "command", cmd.words[0], "key", cmd.words[1],
		"error", reply, "do", advice[i][1])
}

// Refused logs that a limiter or its limit makes no sense, so that its calls are not sent.
func (c *Conn) Refused(name string, err error) {
	c.log(logged{name, len(advice) - 1}, "throttle: a limiter is refused", "name", name, "error", err)
}

// Unsettled logs that a cost is perhaps not counted, because its settlement failed.
func (c *Conn) Unsettled(by *Timeout, err error) {
	c.log(logged{by.Name, len(advice)}, "throttle: a settlement failed: what it has cost may not be counted", "name", by.Name, "error", err)
}

// logged is what a record of the log is about.
type logged struct {
	name  string // of a limiter, or of none
	cause int    // in advice, or an unsettled cost
}

// log writes a record, unless there was one of the same recently.
func (c *Conn) log(of logged, text string, words ...any) {
	now := c.Now()
	c.mu.Lock()
	last, found := c.records[of]
	due := !found || now < last || now-last >= adviceEvery
	if due {
		c.records[of] = now
	}
	c.mu.Unlock()
	if due {
		c.logger.Error(text, words...)
	}
}
