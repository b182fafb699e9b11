package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted returns what stands between backquotes.
func quoted(text string) (words []string) {
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

// The files, the make targets and the tests that contributors read about exist.
func TestContributing_namesExist(t *testing.T) {
	makefile := strings.Join(readLines(t, "Makefile"), "\n")
	file := regexp.MustCompile(`^(\.?[a-z]+/[\w./-]+|[\w.-]+\.(md|sh|yml))$`)
	target := regexp.MustCompile(`^(?:.* )?make ([a-z-]+)`)
	testName := regexp.MustCompile(`^Test\w+$`)
	count := 0
	for _, page := range []string{"CONTRIBUTING.md", "docs/releasing.md"} {
		for _, word := range quoted(strings.Join(readLines(t, page), "\n")) {
			if m := target.FindStringSubmatch(word); m != nil {
				count++
				if !strings.Contains(makefile, "\n"+m[1]+": ") {
					t.Errorf("%s: there is no target %s", page, m[1])
				}
			}
			if testName.MatchString(word) && !strings.Contains(goFiles(t), "func "+word+"(") {
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
	if count < 25 {
		t.Errorf("%d names found", count)
	}
}

// goFiles returns the text of this package's files.
func goFiles(t *testing.T) (text string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text += strings.Join(readLines(t, filepath.Join("module", file)), "\n")
	}
	return text
}
