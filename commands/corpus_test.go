package commands_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

var rewrite = flag.Bool("rewrite", false, "write the replies and effects of package memory into the transcripts of tests/corpus")

// Package memory replies and replicates what the transcripts say, and no handler breaks its contract.
func TestCorpus(t *testing.T) {
	host := &twins{corpus.NewMemory(), t}
	host.Check(t.Errorf, commands.Rubbish)
	corpus.Run(t, host, "../tests/corpus", corpus.Options{Rewrite: *rewrite})
}

// twins makes a call's read-only twin before the call. The twin must reply the same, and change nothing.
type twins struct {
	*corpus.Memory
	t *testing.T
}

func (h *twins) Call(words []string) (any, [][]string) {
	twin := slices.Concat([]string{words[0] + "_RO"}, words[1:])
	if corpus.Samples[twin[0]] == nil {
		return h.Memory.Call(words)
	}
	before := h.Dump()
	would, expired := h.Memory.Call(twin)
	if after := h.Dump(); after != before {
		h.t.Errorf("%q: the keys were\n%s\nand are\n%s", twin, before, after)
	}
	reply, effects := h.Memory.Call(words)
	a, b := corpus.ReplyText(would), corpus.ReplyText(reply)
	if strings.Replace(a, "_ro' command", "' command", 1) != b {
		h.t.Errorf("%q: %s, and then %s", twin, a, b)
	}
	return reply, append(expired, effects...)
}

// What no single transcript shows: together they have an admitted call of every command, a wrong one of every command that
// writes, and every error but those that package cgo makes.
func TestCorpus_complete(t *testing.T) {
	replies := ""
	for _, c := range corpus.Cases {
		for _, s := range c.Steps {
			replies += s.Reply + "\n"
		}
	}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		text, _, _ := strings.Cut(e.Text(), "<word>")
		if e != commands.ErrInternal && e != commands.ErrForked && e != commands.ErrTopOff && !strings.Contains(replies, text) {
			t.Errorf("no transcript has the error %q", text)
		}
	}
	for _, row := range commands.Table {
		if s := corpus.Samples[row.Name]; s == nil || s.Second == "" {
			t.Errorf("no transcript has a case with @sample of %s", row.Name)
		} else if changes := s.Writes && !row.Writes(); changes {
			t.Errorf("%s writes", row.Name)
		}
		if row.Writes() && len(corpus.Wrong[row.Name]) == 0 {
			t.Errorf("no transcript has a wrong call of %s", row.Name)
		}
	}
}
