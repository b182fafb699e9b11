package tests

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command of docs/migrating.md works as it stands there, and gives the reply that the
// page promises.
func TestMigrating_everyCommandWorks(t *testing.T) {
	s := start(t, options{})
	file, err := os.ReadFile("../docs/migrating.md")
	require.NoError(t, err)
	blocks, replies := commandsIn(string(file))
	require.Greater(t, len(blocks), 9, "number of blocks: there is one for each recipe")
	promised := 0
	for i, block := range blocks {
		var got []string
		var fresh bool
		for try := 0; try < 5 && !fresh; try++ { // repeat if so much time has passed that a unit may have drained
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
	// The commands within the text work too.
	require.NoError(t, s.FlushAll(ctx).Err())
	inText := regexp.MustCompile("`((?:GO|CL)\\.[A-Z_]+ [^`]+)`").FindAllStringSubmatch(string(file), -1)
	require.NotEmpty(t, inText)
	for _, command := range inText {
		assert.Regexp(t, `^\[[-0-9 \[\]]+\]$`, s.ask(command[1]), command[1])
	}
}

// The examples of docs/commands.md work too.
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
