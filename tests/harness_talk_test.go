package tests

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// turn is one part of a conversation: a command and its reply, or some time that passes.
type turn struct {
	command, reply string
	later          time.Duration
}

var (
	commandLine = regexp.MustCompile(`^[A-Z][A-Z.]*[A-Z](_RO)?( |$)`)
	waitLine    = regexp.MustCompile(`^(\d+) (second|minute|hour)s? later:$`)
	integerLine = regexp.MustCompile(`^\d+\) \(integer\) (-?\d+)`)
	waitUnits   = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}
)

// turnsOf reads the lines of a conversation. A command stands after ">" and goes on in lines that begin with a
// blank. Its reply follows; two blanks and more end the reply. Without any ">" each line is a command, "1) (integer) 0"
// is a part of its reply, and lines that begin with a blank explain.
func turnsOf(lines []string) (turns []turn, err error) {
	prompts := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "> ") })
	for _, line := range lines {
		last := len(turns) - 1
		command, prompt := strings.CutPrefix(line, "> ")
		wait, integer := waitLine.FindStringSubmatch(line), integerLine.FindStringSubmatch(line)
		switch {
		case line == "":
		case prompt || !prompts && commandLine.MatchString(line):
			turns = append(turns, turn{command: command})
		case wait != nil:
			n, _ := strconv.Atoi(wait[1])
			turns = append(turns, turn{later: time.Duration(n) * waitUnits[wait[2]]})
		case last < 0 || commandLine.MatchString(strings.TrimSpace(line)) && !prompts:
			return nil, fmt.Errorf("neither a command nor a reply: %q", line)
		case strings.HasPrefix(line, " ") && prompts:
			turns[last].command += line
		case strings.HasPrefix(line, " "):
		case !prompts && integer != nil:
			turns[last].reply = strings.TrimSpace(turns[last].reply + " " + integer[1])
		case prompts && turns[last].reply == "" && turns[last].command != "":
			turns[last].reply, _, _ = strings.Cut(line, "  ")
		default:
			return nil, fmt.Errorf("neither a command nor a reply: %q", line)
		}
	}
	return turns, nil
}

// drift is more than the frozen clock of Valkey 9.1 goes on in one conversation, and tolerance is more
// than what then drains or passes.
const (
	drift     = 50 * time.Millisecond
	tolerance = 200
)

// talk is the conversations of one section of a page. They begin at 18:00 UTC on an empty server.
type talk struct {
	*server
	clock *clock
	now   time.Time
}

// begin empties the server and sets its clock to a day after the last section: the module's clock never runs
// backward.
func (k *talk) begin() {
	k.now = k.now.Truncate(24 * time.Hour).Add(42 * time.Hour)
	k.clock.freeze(k.now)
	k.sees(k.now)
	k.must("FLUSHALL")
	k.must("CONFIG RESETSTAT")
	if err := k.ConfigSet(ctx, "gothrottle.policies", pagePolicies).Err(); err != nil {
		k.t.Fatal(err)
	}
}

// pagePolicies are the policies that the calls of GO.POLICY on the pages have.
const pagePolicies = "api THROTTLE 9 10 1s; login THROTTLE 4 5 300s"

// run sends the commands of a block. promised, if there are any, are the replies in order.
func (k *talk) run(lines, promised []string) error {
	turns, err := turnsOf(lines)
	if err != nil {
		return err
	}
	commands := slices.DeleteFunc(slices.Clone(turns), func(turn turn) bool { return turn.command == "" })
	if promised != nil && len(promised) != len(commands) {
		return fmt.Errorf("%d commands have %d replies", len(commands), len(promised))
	}
	for _, turn := range turns {
		if turn.later > 0 {
			if k.server.now() != k.now.UnixNano() {
				k.now = k.now.Add(drift)
			}
			k.now = k.now.Add(turn.later)
			k.clock.freeze(k.now)
			k.sees(k.now)
			continue
		}
		if promised != nil {
			turn.reply, promised = promised[0], promised[1:]
		}
		if err := k.check(turn); err != nil {
			return err
		}
	}
	return nil
}

var quotedWord = regexp.MustCompile(`"([^"]*)"|(\S+)`)

// check sends a command and compares its reply. A command without a promised reply must not be an error. INFO needs
// only to have the line. If the clock goes on, numbers from 1000 up may differ by tolerance.
func (k *talk) check(turn turn) error {
	var words []any
	for _, m := range quotedWord.FindAllStringSubmatch(turn.command, -1) {
		words = append(words, m[1]+m[2])
	}
	reply, err := k.Do(ctx, words...).Result()
	if failure(err) != nil {
		return fmt.Errorf("%s: %w", turn.command, err)
	}
	got, want := flat(reply, err), turn.reply
	if want == "" {
		return nil
	}
	if words[0] == "INFO" {
		if !slices.Contains(strings.Fields(got), want) {
			return fmt.Errorf("%s lacks %s", turn.command, want)
		}
		return nil
	}
	if strings.Contains(want, " ") {
		want = "[" + want + "]"
	}
	if k.server.now() != k.now.UnixNano() {
		got = near(got, want)
	}
	if got != want {
		return fmt.Errorf("%s: %s, the page says %s", turn.command, got, want)
	}
	return nil
}

var digits = regexp.MustCompile(`\d+`)

// near returns got with the numbers of want in place of those that differ by no more than tolerance.
func near(got, want string) string {
	wanted := digits.FindAllString(want, -1)
	return digits.ReplaceAllStringFunc(got, func(digits string) string {
		if len(wanted) == 0 {
			return digits
		}
		a, _ := strconv.Atoi(digits)
		b, _ := strconv.Atoi(wanted[0])
		wanted = wanted[1:]
		if b >= 1000 && a >= b-tolerance && a <= b+tolerance {
			return strconv.Itoa(b)
		}
		return digits
	})
}
