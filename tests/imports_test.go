package tests

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The suite looks from outside: of the project it may know the command table alone.
func TestImports_nothingOfOursButTheCommandTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if path == "gothrottle" || strings.HasPrefix(path, "gothrottle/") {
				assert.Equal(t, "gothrottle/commands", path, file)
			}
		}
	}
}
