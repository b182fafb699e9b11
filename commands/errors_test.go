package commands_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
)

// A rule for all texts: a code in capitals, then a sentence without a dot at its end, unlike that of any other error. The text
// fits in the host's memory, with the longest word that it may name.
func TestErrorTexts(t *testing.T) {
	seen := map[string]bool{}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		text := e.Text()
		code, sentence, _ := strings.Cut(text, " ")
		if code != strings.ToUpper(code) || sentence == "" || strings.HasSuffix(text, ".") || seen[text] {
			t.Errorf("error %d: %q", e, text)
		}
		seen[text] = true
		call := commands.Call{Args: []string{strings.Repeat("x", 1000)}, ErrWord: 1, ErrClause: commands.MaxClauses}
		switch e {
		case commands.ErrClauseShort:
			call.Args[0] = "throttle"
		case commands.ErrNotOptionOfClause:
			call.Clauses, call.ErrClause = make([]commands.Clause, 1), 1
		}
		if n := len(call.AppendError(nil, e)); n >= commands.MaxErrorText { // the host adds a zero
			t.Errorf("%q has up to %d bytes", text, n)
		}
	}
}

// The bounds that an error names are true: a call with either of them in place of the wrong word meets no bound of it.
func TestErrorTexts_bounds(t *testing.T) {
	between := regexp.MustCompile(` between (.+) and (.+)$`)
	for _, line := range []string{"GO.THROTTLE k # 1000000000000 1ms", "GO.THROTTLE k 0 # 1s", "GO.THROTTLE k 0 1 #", "GO.THROTTLE k 0 1 1s #",
		"GO.THROTTLE k 0 1 1s 1 RESERVE #", "GO.THROTTLE k 0 1 1s LOCKOUT #", "CL.THROTTLE k 0 1 #", "GO.WINDOW k # 1s", "GO.WINDOW k 1 #",
		"GO.QUOTA k 1 # ALIGN +00:00", "GO.LEASE k 1 # id", "GO.TOP #", "GO.ALL k WINDOW # 1s", "GO.ALL k THROTTLE 0 1 1s LOCKOUT #"} {
		ask := func(word string) string {
			reply, err := memory.NewServer().Do(1e15, strings.Fields(strings.Replace(line, "#", word, 1))...)
			return fmt.Sprint(reply, err)
		}
		found := 0
		for _, wrong := range []string{"-9223372036854775808", "0", "9223372036854775807", "0mo", "1201mo"} {
			bounds := between.FindStringSubmatch(ask(wrong))
			for i := 1; i < len(bounds); i++ {
				found++
				word := strings.NewReplacer("100 years", "36500d", " ms", "ms", " s", "s").Replace(bounds[i])
				if strings.HasPrefix(line, "CL.") { // it takes no unit
					word = strings.NewReplacer("36500d", "3153600000", "s", "").Replace(word)
				}
				if text := ask(word); strings.Contains(text, "must be") || strings.Contains(text, "is not") {
					t.Errorf("%s: after %s, %s is wrong, too: %s", line, bounds[0], word, text)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: nothing is out of bounds", line)
		}
	}
}
