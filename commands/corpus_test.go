package commands_test

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

var rewrite = flag.Bool("rewrite", false, "write the replies and effects of package memory into the transcripts of tests/corpus")

// Package memory replies and replicates what the transcripts say, and no handler breaks its contract.
func TestCorpus(t *testing.T) {
	corpus.Run(t, newTwins(t), "../tests/corpus", corpus.Options{Rewrite: *rewrite})
}

// twins is package memory as a host. It makes a call's read-only twin before the call: the twin must reply the same, and
// change nothing. Every handler must keep its contract.
type twins struct {
	*corpus.Memory
	contract
}

func newTwins(t *testing.T) *twins {
	h := &twins{corpus.NewMemory(), contract{t: t}}
	h.Handle(h.contract.run)
	h.CountDenials(1000)
	return h
}

func (h *twins) Call(words []string) (any, [][]string) {
	twin := slices.Concat([]string{words[0] + "_RO"}, words[1:])
	if corpus.Samples[twin[0]] == nil {
		return h.made(words)
	}
	would, expired := h.made(twin)
	for _, effect := range expired {
		if effect[0] != "DEL" {
			h.t.Errorf("%q: it makes %q", twin, effect)
		}
	}
	reply, effects := h.made(words)
	a, b := corpus.ReplyText(would), corpus.ReplyText(reply)
	if strings.Replace(a, "_ro' command", "' command", 1) != b {
		h.t.Errorf("%q: %s, and then %s", twin, a, b)
	}
	return reply, append(expired, effects...)
}

// made makes a call in a room full of rubbish. Each key that it writes must have an expiry.
func (h *twins) made(words []string) (any, [][]string) {
	if h.room != nil {
		commands.Rubbish(h.room)
	}
	reply, effects := h.Memory.Call(words)
	for _, effect := range effects {
		if v := h.Get(effect[1]); v != nil && v.Expire == 0 {
			h.t.Errorf("%q: the key has no expiry", words)
		}
	}
	return reply, effects
}

var clauseNumber = regexp.MustCompile(`^ERR clause \d+: `)

// No single transcript shows this: together they have an admitted call of every command, a wrong one of every command that
// writes, every keyword of every command, and every error but those that package cgo makes.
func TestCorpus_complete(t *testing.T) {
	replies, wrong, admitted := "", map[string]bool{}, map[string]string{}
	for _, c := range corpus.Cases {
		for _, s := range c.Steps {
			replies += clauseNumber.ReplaceAllString(s.Reply, "ERR ") + "\n"
			if name, words, _ := strings.Cut(s.Text, " "); strings.HasPrefix(s.Reply, "ERR ") {
				wrong[name] = true
			} else {
				admitted[name] += " " + strings.ToUpper(words) + " "
			}
		}
	}
	for e := commands.NoError + 1; e < commands.NumErrors; e++ {
		text, _, _ := strings.Cut(e.Text(), "<word>")
		if e != commands.ErrInternal && e != commands.ErrForked && !strings.Contains(replies, text) {
			t.Errorf("no transcript has the error %q", text)
		}
	}
	for _, row := range commands.Table {
		if s := corpus.Samples[row.Name]; s == nil || s.Second == "" {
			t.Errorf("no transcript has a case with @sample of %s", row.Name)
		}
		if row.Writes() && !wrong[row.Name] {
			t.Errorf("no transcript has a wrong call of %s", row.Name)
		}
		for _, keyword := range regexp.MustCompile(`[A-Z]+`).FindAllString(strings.TrimPrefix(row.Syntax(), row.Name), -1) {
			// TestCorpus makes the twin of each call.
			if !strings.HasSuffix(row.Name, "_RO") && !strings.Contains(admitted[row.Name], " "+keyword+" ") {
				t.Errorf("no transcript has a call of %s with %s", row.Name, keyword)
			}
		}
	}
}
