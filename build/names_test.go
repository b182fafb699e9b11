package build_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The make targets that pages name exist, as do the files and the tests that CONTRIBUTING.md and docs/releasing.md name.
func TestNames_exist(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	more, err2 := filepath.Glob("../docs/*.md")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	makefile, tests, count := read(t, "Makefile"), read(t, "build/copy_test.go"), 0
	file := regexp.MustCompile(`^(\.?[a-z]+/[\w./-]+|[\w.-]+\.(md|sh|yml))$`)
	for _, page := range append(pages, more...) {
		contributing := strings.HasSuffix(page, "CONTRIBUTING.md") || strings.HasSuffix(page, "releasing.md")
		for _, word := range quoted(read(t, page[len("../"):])) {
			if m := regexp.MustCompile(`^(?:.* )?make ([a-z-]+)`).FindStringSubmatch(word); m != nil {
				count++
				if !strings.Contains(makefile, "\n"+m[1]+": ") {
					t.Errorf("%s: there is no target %s", page, m[1])
				}
			}
			if !contributing {
				continue
			}
			if regexp.MustCompile(`^Test\w+$`).MatchString(word) && !strings.Contains(tests, "func "+word+"(") {
				t.Errorf("%s: there is no test %s", page, word)
			}
			if file.MatchString(word) && !strings.HasPrefix(word, "build/out") {
				count++
				if _, err := os.Stat(filepath.Join("..", word)); err != nil {
					t.Errorf("%s: there is no %s", page, word)
				}
			}
		}
	}
	if count < 40 {
		t.Errorf("%d names found", count)
	}
}
