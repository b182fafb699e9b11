package commands_test

import (
	"flag"
	"testing"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

var rewrite = flag.Bool("rewrite", false, "write the replies and effects of package memory into the transcripts of tests/corpus")

// Package memory replies and replicates what the transcripts say, and no handler breaks its contract.
func TestCorpus(t *testing.T) {
	host := corpus.NewMemory()
	host.Check(t.Errorf, commands.Rubbish)
	corpus.Run(t, host, "../tests/corpus", corpus.Options{Rewrite: *rewrite})
}
