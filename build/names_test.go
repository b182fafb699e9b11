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
			if m := regexp.MustCompile(`^(?:.* )?make ([a-z0-9-]+)`).FindStringSubmatch(word); m != nil {
				count++
				_, err := os.Stat(m[1] + ".sh")
				if part := err == nil && strings.HasPrefix(m[1], "test-"); !part && !strings.Contains(makefile, "\n"+m[1]+": ") {
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

// make help fits on a screen, and has every target.
func TestNames_help(t *testing.T) {
	help, targets := runIn(t, "..", "make", "--no-print-directory", "help"), regexp.MustCompile(`(?m)^([a-z%-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1)
	for line := range strings.Lines(help) {
		if len(line) > 80 {
			t.Errorf("more than 79 columns: %s", line)
		}
	}
	for _, m := range targets {
		if name := strings.ReplaceAll(m[1], "%", "PART"); !strings.Contains(help, "make "+name+" ") {
			t.Errorf("make help lacks %s", name)
		}
	}
	if len(targets) < 10 || len(targets) > 15 {
		t.Errorf("%d targets, want at most 15", len(targets))
	}
}
