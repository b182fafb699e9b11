package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// The map in CONTRIBUTING.md has each folder of the repository once and no other, and says of each
// what the import rules say.
func TestContributing_map(t *testing.T) {
	rows := map[string]struct{ allowed, forbidden []string }{}
	for _, line := range readLines(t, "CONTRIBUTING.md") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") {
			continue
		}
		folder := quoted(cells[1])[0]
		if _, found := rows[folder]; found {
			t.Errorf("the map has %s twice", folder)
		}
		rows[folder] = struct{ allowed, forbidden []string }{quoted(cells[3]), quoted(cells[4])}
		if info, err := os.Stat(filepath.Join("..", folder)); err != nil || !info.IsDir() {
			t.Errorf("the map has %s, which is no folder", folder)
		}
	}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, found := rows[e.Name()]; e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !found {
			t.Errorf("the map lacks %s", e.Name())
		}
	}
	for folder, rule := range rules {
		if _, found := rows[folder]; !found {
			t.Errorf("the map lacks %s", folder)
		}
		wantSame(t, folder+" may import", rows[folder].allowed, rule.allowed, folder)
		wantSame(t, folder+" must not import", rows[folder].forbidden, rule.forbidden, "")
	}
	for folder, row := range rows {
		if _, ruled := rules[folder]; !ruled && len(row.allowed)+len(row.forbidden) > 0 {
			t.Errorf("the map has import rules of %s, which has none", folder)
		}
	}
}

// wantSame compares the words of the map with those of a rule, in any order. A folder may import
// itself: the map does not say that.
func wantSame(t *testing.T, what string, told, rule []string, itself string) {
	t.Helper()
	var want []string
	for _, name := range rule {
		if name = strings.TrimPrefix(name, "./"); name != itself {
			want = append(want, name)
		}
	}
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("%s %q, the map says %q", what, want, told)
	}
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
