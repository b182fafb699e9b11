package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// sent is calls that one client sends together, and what came back.
type sent struct {
	calls   []words
	replies []string
	failed  string // a reply that is not that of the calls
	whole   bool   // the server makes all of the calls or none
	doubles bool   // the replies went through a script, whose numbers are doubles
}

// calls makes calls and compares each reply with the model.
func (r *run) calls(st *step) {
	// A limiter looks different to a module whose clock is behind. So the replica is asked while the two clocks agree.
	switch {
	case st.Via == "replica" && r.twin.module.Last == r.m.now:
		r.inStep()
		r.check(send(r.twin.client, "plain", st.Calls))
	case st.Via == "parallel":
		r.parallel(st.Calls)
	default:
		r.check(send(r.master.client, st.Via, st.Calls))
	}
}

// parallel makes calls over several connections at the same time. No two connections have a key in common, so their order does
// not matter. Calls with several keys are left out.
func (r *run) parallel(calls []words) {
	const numGroups = 4
	var groups [numGroups][]words
	for _, w := range calls {
		if keys := keysOf(w); len(keys) == 1 && keys[0] != "" {
			at := keys[0][len(keys[0])-1] % numGroups
			groups[at] = append(groups[at], w)
		}
	}
	var results [numGroups]sent
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() { results[i] = send(r.master.client, "plain", groups[i]) })
	}
	wait.Wait()
	for _, s := range results {
		r.check(s)
	}
}

// send sends calls to a server: plain, as a transaction (multi) or as a script (eval).
func send(c *redis.Client, via string, calls []words) (s sent) {
	p := c.Pipeline()
	switch via {
	case "eval":
		return sendScript(c, calls)
	case "multi": // the server would refuse all of them
		p, calls = c.TxPipeline(), slices.DeleteFunc(slices.Clone(calls), tooFew)
	}
	for _, words := range calls {
		p.Do(ctx, corpus.Args(words)...)
	}
	cmds, _ := p.Exec(ctx)
	for _, c := range cmds {
		s.replies = append(s.replies, text(c.(*redis.Cmd).Result()))
	}
	s.calls, s.whole = calls, via == "multi"
	return s
}

// makeCalls calls each command of its arguments and returns the replies. Before the words of a command is their number.
const makeCalls = `local all, i = {}, 1
while i <= #ARGV do
	local n = tonumber(ARGV[i])
	all[#all + 1] = redis.pcall(unpack(ARGV, i + 1, i + n))
	i = i + n + 1
end
return all`

func sendScript(c *redis.Client, calls []words) sent {
	var keys []string
	var args []any
	for _, w := range calls {
		keys, args = append(keys, keysOf(w)...), append(append(args, len(w)), corpus.Args(w)...)
	}
	s, cmd := sent{calls: calls, whole: true, doubles: true}, c.Eval(ctx, makeCalls, keys, args...)
	v, err := cmd.Slice()
	for i := range v {
		refused, _ := v[i].(error)
		s.replies = append(s.replies, text(v[i], refused))
	}
	switch whole := text(cmd.Result()); {
	case whole == lost:
		s.replies = slices.Repeat([]string{lost}, len(calls))
	case err != nil || len(v) != len(calls):
		s.failed = whole
	}
	return s
}

// check compares replies with the model, which makes the calls.
func (r *run) check(s sent) {
	if s.failed != "" {
		r.differ("the calls %q got the reply %s", s.calls, s.failed)
	}
	for i, words := range s.calls {
		if s.replies[i] == lost {
			s.calls = s.calls[i:]
			r.lost = &s
			return
		}
		r.checkOne(words, s.replies[i], s.doubles)
	}
}

func (r *run) checkOne(words []string, reply string, doubles bool) {
	r.tally["calls"]++
	want := r.m.call(words)
	if doubles {
		reply, want = rounded(reply), rounded(want)
	}
	if !fits(words, reply, want) {
		r.differ("%q at %d: reply %s, want %s", words, r.m.now, reply, want)
	}
}

var large = regexp.MustCompile(`\d{16,}`) // integers of which a double may hold a neighbour

// rounded returns a reply with its large integers as doubles.
func rounded(reply string) string {
	return large.ReplaceAllStringFunc(reply, func(digits string) string {
		n, _ := strconv.ParseFloat(digits, 64) // digits alone are always right
		return fmt.Sprintf("%.0f", n)
	})
}

// fits reports whether a reply is what is wanted. The server itself replies to a call with too few words. What GO.TOP counts
// is not known.
func fits(words []string, reply, want string) bool {
	switch {
	case strings.Contains(reply, "internal error"):
		return false
	case commands.Find(words[0]).NoKey && want[0] != '-':
		return reply[0] != '-'
	case tooFew(words):
		return strings.HasPrefix(reply, "-ERR")
	}
	return reply == want
}

// settle finds out which of the calls that got no reply were made: the first few, until nothing differs, or all or none if
// the server makes them as a whole.
func (r *run) settle() {
	s := r.lost
	if s == nil {
		return
	}
	r.lost = nil
	all := r.dataset(r.master)
	differs := func() error { return attempt(func() { r.holds(all) }) }
	err := differs()
	for i := 0; err != nil && i < len(s.calls); i++ {
		if r.m.call(s.calls[i]); !s.whole || i == len(s.calls)-1 {
			err = differs()
		}
	}
	must(err)
}
