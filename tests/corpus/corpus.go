// Package corpus reads the transcripts in this folder, and runs them on a host: package memory, the server made of C, or a
// real server. A transcript says what calls reply and what they replicate:
//
//	# A denial begins a pause.
//	> GO.THROTTLE k 4 5 300 5              0 5 0 -1 300
//	  writes HSET k 0 T+300s/ns 1 60; PEXPIREAT k T+375s
//	> GO.THROTTLE k 4 5 300 1 LOCKOUT 900  1 5 0 900 900
//	  writes HSET k 128 T+900s/ns; PEXPIREAT k T+975s
//	+100s
//	> GO.THROTTLE k 4 5 300                1 5 0 800 800
//
// A blank line ends a case; the next one begins on an empty server without policies. Two blanks end a call. A call without
// "writes" replicates nothing. "  replies" is a reply in a line of its own. T+900s is the time of the call and 900 s, in
// ms since the Unix epoch; T+900s/us and T+900s/ns are in µs and ns. A word in quotes has Go's escapes, 3*x is xxx, and
// 2*(a b#) is a b0 a b1. Calls of the server's own commands prepare a case; they need no reply and have no "writes". After
// a line "@replies" a file has no effects: cases before it, or other files, have those of such calls. A case with a line
// "@server" is for real servers. One with a line "@sample" calls a command twice: see Samples. A case with a line "@each"
// runs once for each of the server's own calls in it, which begins it. A line "@2028-02-29T23:00:00Z" sets the clock,
// forward only: later cases and files name later times, or none. A case with a line "@module policies" is not for the
// scripts: the word says why. They run one with "@module range" up to the reply that names the module.
package corpus

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gothrottle/commands/memory"
)

// Case is the lines of a file up to a blank line.
type Case struct {
	RepliesOnly bool // there is a line @replies, here or above
	Steps       []*Step
}

// Step is one line of a file, with the lines that belong to it.
type Step struct {
	Line   int
	Text   string        // a call or, if Call is false, any other line
	Call   bool          //
	Wait   time.Duration // how far the clock is moved
	At     time.Time     // if not zero: where the clock is set
	Reply  string
	Writes string
}

// Own reports whether a call is one of gothrottle's commands.
func (s *Step) Own() bool { return s.Call && own(s.Text) }

// own reports whether a call is one of the module.
func own(call string) bool {
	call = strings.ToUpper(call[:min(3, len(call))])
	return call == "GO." || call == "CL."
}

// has reports whether a case has a line such as "@server".
func (c *Case) has(line string) bool {
	return slices.ContainsFunc(c.Steps, func(s *Step) bool { return s.Text == line })
}

// moduleOnly begins a line that says why a case needs the module.
const moduleOnly = "@module "

// beyond is the reason of a case that scripts run up to a reply that names the module.
const beyond = "range"

// NeedsModule returns why the scripts can't run a case; "" if they can.
func (c *Case) NeedsModule() string {
	for _, s := range c.Steps {
		if reason, found := strings.CutPrefix(s.Text, moduleOnly); found {
			return reason
		}
	}
	return ""
}

// Parse reads the text of a file.
func Parse(text string) (cases []*Case, err error) {
	c := &Case{}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n")+"\n\n", "\n") {
		s := &Step{Line: i + 1, Text: line}
		last := len(c.Steps) - 1
		switch {
		case line == "":
			if last >= 0 {
				cases, c = append(cases, c), &Case{RepliesOnly: c.RepliesOnly}
			}
			continue
		case aCall.MatchString(line):
			m := aCall.FindStringSubmatch(line)
			s.Call, s.Text, s.Reply = true, m[1], m[2]
		case strings.HasPrefix(line, "  writes ") && last >= 0 && c.Steps[last].Own():
			c.Steps[last].Writes = strings.TrimPrefix(c.Steps[last].Writes+"; "+line[len("  writes "):], "; ")
			continue
		case strings.HasPrefix(line, "  replies ") && last >= 0 && c.Steps[last].Call:
			c.Steps[last].Reply = line[len("  replies "):]
			continue
		case strings.HasPrefix(line, "+"):
			s.Wait, err = time.ParseDuration(line[1:])
		case line == "@server", line == "@sample", line == "@each", strings.HasPrefix(line, moduleOnly):
		case line == "@replies":
			c.RepliesOnly = true
		case strings.HasPrefix(line, "@"):
			s.At, err = time.Parse(time.RFC3339, line[1:])
		case !strings.HasPrefix(line, "#"):
			err = fmt.Errorf("neither a call, a comment, +time, writes nor replies")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", i+1, line, err)
		}
		c.Steps = append(c.Steps, s)
	}
	return cases, nil
}

// runs returns the lines that are run together, each time on an empty server.
func (c *Case) runs() (all [][]*Step) {
	if !c.has("@each") {
		return [][]*Step{c.Steps}
	}
	begins := func(s *Step) bool { return s.Call && !s.Own() }
	rest := slices.DeleteFunc(slices.Clone(c.Steps), begins)
	for _, s := range c.Steps {
		if begins(s) {
			all = append(all, append([]*Step{s}, rest...))
		}
	}
	return all
}

const word = `(?:"(?:[^"\\]|\\.)*"|\S+)`

var (
	aWord    = regexp.MustCompile(word)
	aCall    = regexp.MustCompile(`^> (` + word + `(?: ` + word + `)*)(?:  +(.*))?$`) // with its reply
	repeated = regexp.MustCompile(` (\d+)\*(?:\(([^)]*)\)|(\S))`)
)

// repeat writes repetitions in full.
func repeat(call string) string {
	return repeated.ReplaceAllStringFunc(call, func(text string) string {
		m := repeated.FindStringSubmatch(text)
		n, _ := strconv.Atoi(m[1])
		if m[3] != "" {
			return " " + strings.Repeat(m[3], n)
		}
		all := ""
		for i := range n {
			all += " " + strings.ReplaceAll(m[2], "#", strconv.Itoa(i))
		}
		return all
	})
}

// Words returns the words of a call at a time, in µs since the Unix epoch.
func Words(call string, now int64) (words []string, err error) {
	for _, word := range aWord.FindAllString(repeat(call), -1) {
		if word[0] == '"' {
			if word, err = strconv.Unquote(word); err != nil {
				return nil, err
			}
		}
		words = append(words, relativeTime.ReplaceAllStringFunc(word, func(text string) string {
			m := relativeTime.FindStringSubmatch(text)
			n, e := absolute(m[1], m[2], now)
			if e != nil {
				err = e
			}
			return strconv.FormatInt(n, 10)
		}))
	}
	return words, err
}

var (
	relativeTime = regexp.MustCompile(`\bT([+-][0-9.]+s)(/us|/ns)?`)
	longNumber   = regexp.MustCompile(`\b(?:\d{13}|\d{16}|\d{19})\b`)
)

// units are the lengths of the units of stored times in ns, by how many digits a time of our days has.
var units = map[int]struct {
	nanos int64
	name  string
}{13: {1e6, ""}, 16: {1e3, "/us"}, 19: {1, "/ns"}}

func absolute(after, unit string, now int64) (int64, error) {
	length, err := time.ParseDuration(after)
	for _, u := range units {
		sum := now%1_000_000*1000 + int64(length)
		if u.name == unit && err == nil && sum%u.nanos == 0 {
			return now/1_000_000*(1e9/u.nanos) + sum/u.nanos, nil
		}
	}
	return 0, fmt.Errorf("T%s%s is not exact in its unit", after, unit)
}

// Relative writes the times in a text relative to a time, in µs since the Unix epoch. Numbers that lie more than 20 years
// before or 150 years after it aren't times.
func Relative(text string, now int64) string {
	return longNumber.ReplaceAllStringFunc(text, func(digits string) string {
		u := units[len(digits)]
		n, _ := strconv.ParseInt(digits, 10, 64)
		const year = 365 * 86400
		second := 1e9 / u.nanos
		if away := n/second - now/1_000_000; n == 1<<63-1 || away < -20*year || away > 150*year {
			return digits
		}
		return "T" + seconds((n-now/1_000_000*second)*u.nanos-now%1_000_000*1000) + u.name
	})
}

// seconds writes a length of time in ns as seconds, to the last digit.
func seconds(nanos int64) string {
	text := big.NewRat(nanos, 1e9).FloatString(9)
	if nanos >= 0 {
		text = "+" + text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "s"
}

// plainWord has the ASCII characters that can be seen, but for quotes, semicolons, brackets and parentheses.
var plainWord = regexp.MustCompile(`^[!#-'*-:<-Z\\^-~]+$`)

// Quote writes a word so that Words reads it.
func Quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return strconv.QuoteToASCII(word)
}

// ReplyText writes a reply: an error's text to the end of the line; an array with brackets, but if it is the whole reply
// and has several elements, without; null as (nil). A text that looks like an integer is in quotes.
func ReplyText(reply any) string {
	if m, is := reply.(memory.Map); is {
		reply = []any(m)
	}
	text := itemText(reply)
	if all, _ := reply.([]any); len(all) > 1 {
		return text[1 : len(text)-1]
	}
	return text
}

func itemText(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "(nil)"
	case error:
		return reply.Error()
	case string:
		if _, err := strconv.ParseInt(reply, 10, 64); err == nil {
			return strconv.Quote(reply)
		}
		return Quote(reply)
	case memory.Map:
		return itemText([]any(reply))
	case []any:
		var parts []string
		for _, item := range reply {
			parts = append(parts, itemText(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(reply)
}

// EffectsText writes what was replicated.
func EffectsText(effects [][]string, now int64) string {
	var all []string
	for _, words := range effects {
		var parts []string
		for _, word := range words {
			parts = append(parts, Quote(Relative(word, now)))
		}
		all = append(all, strings.Join(parts, " "))
	}
	return strings.Join(all, "; ")
}
