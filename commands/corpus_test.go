package commands_test

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

var rewrite = flag.Bool("rewrite", false, "write the replies and effects of package memory into the transcripts of tests/corpus")

// Package memory replies and replicates what the transcripts say.
func TestCorpus(t *testing.T) {
	corpus.Run(t, corpus.NewMemory(), "../tests/corpus", corpus.Options{Rewrite: *rewrite})
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
			// TestCorpus in package tests makes the twin of each call.
			if !strings.HasSuffix(row.Name, "_RO") && !strings.Contains(admitted[row.Name], " "+keyword+" ") {
				t.Errorf("no transcript has a call of %s with %s", row.Name, keyword)
			}
		}
	}
}
