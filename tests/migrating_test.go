package tests

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commandsIn returns the command lines of a page by block, and what the line after a
// block promises: one reply for each line, or nothing.
func commandsIn(page string) (blocks [][]string, replies [][]string) {
	inBlock := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(line, "    "); ok {
			if !inBlock {
				blocks, replies = append(blocks, nil), append(replies, nil)
			}
			inBlock = true
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], text)
			continue
		}
		inBlock = inBlock && line == ""
		if promised, ok := strings.CutPrefix(line, "Replies: "); ok {
			for _, reply := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(promised, -1) {
				replies[len(replies)-1] = append(replies[len(replies)-1], reply[1])
			}
		}
	}
	return blocks, replies
}

// Every command of the page for those who come from another recipe works when it is
// pasted, and replies what the page says.
func TestMigrating_everyCommandWorks(t *testing.T) {
	s := start(t, options{})
	file, err := os.ReadFile("../docs/migrating.md")
	require.NoError(t, err)
	blocks, replies := commandsIn(string(file))
	require.Greater(t, len(blocks), 9, "one for each recipe")
	promised := 0
	for i, block := range blocks {
		var got []string
		var fresh bool
		for try := 0; try < 5 && !fresh; try++ { // again, if so much time passed that a unit drained
			require.NoError(t, s.FlushAll(ctx).Err())
			before := s.now()
			got = nil
			for _, line := range block {
				reply := s.ask(line)
				require.Regexp(t, `^(\[[-0-9 \[\]]+\]|[0-9]+|OK)$`, reply, line)
				got = append(got, strings.Trim(reply, "[]"))
			}
			fresh = s.now()-before < 50_000_000
		}
		if replies[i] != nil {
			assert.Equal(t, replies[i], got, "%q", block)
			promised++
		}
	}
	assert.Greater(t, promised, 8)
	// Those within the text too.
	require.NoError(t, s.FlushAll(ctx).Err())
	inText := regexp.MustCompile("`((?:GO|CL)\\.[A-Z_]+ [^`]+)`").FindAllStringSubmatch(string(file), -1)
	require.NotEmpty(t, inText)
	for _, command := range inText {
		assert.Regexp(t, `^\[[-0-9 \[\]]+\]$`, s.ask(command[1]), command[1])
	}
}

// The examples of the reference work too.
func TestMigrating_everyExampleOfTheReferenceWorks(t *testing.T) {
	s := start(t, options{})
	file, err := os.ReadFile("../docs/commands.md")
	require.NoError(t, err)
	examples := regexp.MustCompile("`((?:GO|CL)\\.[A-Z_]+ [^`]*[0-9][^`]*)`").FindAllStringSubmatch(string(file), -1)
	require.NotEmpty(t, examples)
	for _, example := range examples {
		assert.Regexp(t, `^\[[-0-9 \[\]]+\]$`, s.ask(example[1]), example[1])
	}
}
