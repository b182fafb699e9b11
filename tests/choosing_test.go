package tests

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every conversation of docs/choosing.md goes as it stands there. Those of a section begin at
// 18:00 UTC on an empty server, each section a day after the one before: the module's clock never
// runs backward.
func TestChoosing_everyCaseWorks(t *testing.T) {
	file, err := os.ReadFile("../docs/choosing.md")
	require.NoError(t, err)
	clock := newClock(t)
	day := time.Date(2027, 1, 15, 18, 0, 0, 0, time.UTC)
	clock.freeze(day)
	s := start(t, options{clock: clock})
	cases := 0
	for _, section := range strings.Split(string(file), "\n## ")[1:] {
		day = day.AddDate(0, 0, 1)
		now := day
		clock.freeze(now)
		s.sees(now)
		require.NoError(t, s.FlushAll(ctx).Err())
		blocks, _ := commandsIn(section)
		for _, block := range blocks {
			for _, turn := range turnsOf(t, block) {
				if turn.later > 0 {
					if s.now() != now.UnixNano() {
						now = now.Add(drift)
					}
					now = now.Add(turn.later)
					clock.freeze(now)
					s.sees(now)
					continue
				}
				s.checkTurn(turn, now)
			}
		}
		if len(blocks) > 0 {
			cases++
		}
	}
	assert.Equal(t, 7, cases, "sections with conversations")
}

// The commands within the text of docs/choosing.md work too.
func TestChoosing_everyCommandWorks(t *testing.T) {
	file, err := os.ReadFile("../docs/choosing.md")
	require.NoError(t, err)
	s := start(t, options{})
	require.NoError(t, s.ConfigSet(ctx, "gothrottle.policies", "api THROTTLE 9 10 1s; login THROTTLE 4 5 300s").Err())
	inText := regexp.MustCompile("`((?:GO|CL)\\.[A-Z_]+ [^`]+)`").FindAllStringSubmatch(string(file), -1)
	require.Greater(t, len(inText), 10)
	for _, command := range inText {
		require.NoError(t, s.FlushAll(ctx).Err())
		assert.Regexp(t, `^\[0 [-0-9 \[\]]+\]$`, s.ask(command[1]), command[1])
	}
}

// turn is one part of a conversation: a command and its reply, or some time that passes.
type turn struct {
	command, reply string
	later          time.Duration
}

// turnsOf reads a block. A command stands after ">" and goes on in lines that begin with a blank. Its
// reply follows; two blanks and more end the reply.
func turnsOf(t *testing.T, block []string) (turns []turn) {
	t.Helper()
	wait := regexp.MustCompile(`^(\d+) (second|minute|hour)s? later:$`)
	units := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}
	for _, line := range block {
		last := len(turns) - 1
		if command, ok := strings.CutPrefix(line, "> "); ok {
			turns = append(turns, turn{command: command})
		} else if m := wait.FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			turns = append(turns, turn{later: time.Duration(n) * units[m[2]]})
		} else if strings.HasPrefix(line, " ") {
			turns[last].command += line
		} else {
			require.Empty(t, turns[last].reply, "a second reply: %s", line)
			turns[last].reply, _, _ = strings.Cut(line, "  ")
		}
	}
	return turns
}

// drift is more than the frozen clock of Valkey 9.1 goes on in one conversation, and tolerance is more
// than what then drains or passes.
const (
	drift     = 50 * time.Millisecond
	tolerance = 200
)

// checkTurn sends a command at a time of the frozen clock and compares its reply. INFO needs only to
// have the line. If the clock goes on, numbers from 1000 up may differ by tolerance.
func (s *server) checkTurn(turn turn, now time.Time) {
	s.t.Helper()
	var words []any
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(turn.command, -1) {
		words = append(words, m[1]+m[2])
	}
	got, want := flat(s.Do(ctx, words...).Result()), turn.reply
	if words[0] == "INFO" {
		assert.Contains(s.t, strings.Fields(got), want, turn.command)
		return
	}
	if strings.Contains(want, " ") {
		want = "[" + want + "]"
	}
	if s.now() != now.UnixNano() {
		got = near(got, want)
	}
	assert.Equal(s.t, want, got, turn.command)
}

// near returns got with the numbers of want in place of those that differ by no more than tolerance.
func near(got, want string) string {
	wanted := regexp.MustCompile(`\d+`).FindAllString(want, -1)
	return regexp.MustCompile(`\d+`).ReplaceAllStringFunc(got, func(digits string) string {
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
