package build_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The make targets that pages name exist, as do the files and the tests that CONTRIBUTING.md and docs/releasing.md name.
func TestNames_exist(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	more, err2 := filepath.Glob("../docs/*.md")
	require.NoError(t, errors.Join(err, err2))
	makefile, tests, count := read(t, "Makefile"), read(t, "build/copy_test.go"), 0
	file := regexp.MustCompile(`^(\.?[a-z]+/[\w./-]+|[\w.-]+\.(md|sh|yml))$`)
	for _, page := range append(pages, more...) {
		contributing := strings.HasSuffix(page, "CONTRIBUTING.md") || strings.HasSuffix(page, "releasing.md")
		for _, word := range quoted(read(t, page[len("../"):])) {
			if m := regexp.MustCompile(`^(?:.* )?make ([a-z0-9-]+)`).FindStringSubmatch(word); m != nil {
				count++
				_, err := os.Stat(m[1] + ".sh")
				part := err == nil && strings.HasPrefix(m[1], "test-")
				assert.True(t, part || strings.Contains(makefile, "\n"+m[1]+": "), "%s: there is no target %s", page, m[1])
			}
			if !contributing {
				continue
			}
			if regexp.MustCompile(`^Test\w+$`).MatchString(word) {
				assert.True(t, strings.Contains(tests, "func "+word+"("), "%s: there is no test %s", page, word)
			}
			if file.MatchString(word) && !strings.HasPrefix(word, "build/out") {
				count++
				_, err := os.Stat(filepath.Join("..", word))
				assert.NoError(t, err, page)
			}
		}
	}
	assert.GreaterOrEqual(t, count, 40)
}
