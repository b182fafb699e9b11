package commands_test

import (
	"regexp"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/funnel"
	"gothrottle/script"
	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
)

// Random calls: the commands and their read-only twins decide and reply as the exact models do, also on a machine whose clock
// starts in 1970: there a TAT, and the end of a lockout, may lie before 2001. A server that applies the effects of a call holds
// the same, with the same expiries.
func TestAll_random(t *testing.T) {
	calls := 6000
	if testing.Short() {
		calls = 2000
	}
	world.Compare(t, &followed{Memory: corpus.NewMemory(), t: t, replica: corpus.NewMemory()}, calls, 0)
}

// followed is package memory and a replica of it.
type followed struct {
	*corpus.Memory
	t       *testing.T
	replica *corpus.Memory
	now     funnel.Micros
	emptied int
}

func (h *followed) Empty() {
	h.emptied++
	h.now = []funnel.Micros{corpus.Epoch, 1_000_000}[h.emptied%2]
	h.Begin(int64(h.now))
	h.replica.Begin(int64(h.now))
}

func (h *followed) At(step funnel.Micros, batch []world.Made) (now funnel.Micros, replies []string) {
	h.now += step
	h.Clock(int64(h.now))
	h.replica.Clock(int64(h.now))
	for _, c := range batch {
		if c.Policies != "" && h.SetPolicies(c.Policies) != nil {
			h.t.Fatal(c.Policies)
		}
		reply, effects := h.Call(c.Words)
		replies = append(replies, corpus.ReplyText(reply))
		for _, effect := range effects {
			_, _ = h.replica.Do(0, effect...)
		}
		if a, b := h.Dump(), h.replica.Dump(); a != b {
			h.t.Errorf("%q: %q: it holds\n%s\nand its replica\n%s", c.Words, effects, a, b)
		}
	}
	return h.now, replies
}

// The world makes calls with each option of the commands that it makes, and reads them, so that TestAll_random compares the
// option with the models. The script knows the option; that it has it for the same commands, the transcripts show.
func TestOptions_everywhere(t *testing.T) {
	read := map[string]bool{}
	for seed := range uint64(40) {
		g := world.NewGenerator(seed, 8)
		g.Tight, g.Shares = true, seed%2 == 1
		policies := world.NewPolicies(g.Policies())
		for range 300 {
			w := g.Call()
			_, known := policies.Parse(w)
			for _, word := range w {
				read[w[0]+" "+word] = known || read[w[0]+" "+word]
			}
		}
	}
	listed := regexp.MustCompile(`word\.has\('(.*)', text\) and text`).FindStringSubmatch(script.Text)[1]
	for _, row := range commands.Table {
		for _, word := range regexp.MustCompile(`[A-Z]+`).FindAllString(strings.TrimPrefix(row.Syntax(), row.Name), -1) {
			if _, made := read[row.Name+" "+row.Name]; made && commands.IsOption(word) && !read[row.Name+" "+word] {
				t.Errorf("tests/world makes no call of %s with %s that its reader knows", row.Name, word)
			}
			if commands.IsOption(word) && !strings.Contains(listed, " "+word+" ") {
				t.Errorf("script/gothrottle.lua has no option %s", word)
			}
		}
	}
}
