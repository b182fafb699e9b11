package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is one code block of a page: lines that are indented by four blanks, or that stand between fences.
type block struct {
	page    string // path of the page, from the root of the repository
	section string // the heading above the block, without its number signs
	line    int    // number of the first line
	lines   []string
	replies []string // what the line "Replies:" after the block promises; nil without such a line
}

// first returns the first line, which names the block in messages and in the table elsewhere.
func (b *block) first() string { return b.lines[0] }

// text returns the block with its lines.
func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

var promise = regexp.MustCompile("`([^`]*)`")

// blocksOf returns the blocks of a page.
func blocksOf(page, text string) (blocks []*block) {
	var last *block
	section, fenced, open := "", false, false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " ")
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced, open = !fenced, false
			continue
		case fenced:
			code = line
		case line == "" && open: // the block may go on below
		case !indented:
			open = false
			if heading := strings.TrimLeft(line, "#"); heading != line {
				section, last = strings.TrimSpace(heading), nil
			}
			if promised, ok := strings.CutPrefix(line, "Replies: "); ok && last != nil {
				for _, reply := range promise.FindAllStringSubmatch(promised, -1) {
					last.replies = append(last.replies, reply[1])
				}
			}
			continue
		}
		if !open && code == "" {
			continue
		}
		if !open {
			last = &block{page: page, section: section, line: i + 1}
			blocks = append(blocks, last)
		}
		open = true
		last.lines = append(last.lines, code)
	}
	for _, b := range blocks {
		for b.lines[len(b.lines)-1] == "" {
			b.lines = b.lines[:len(b.lines)-1]
		}
	}
	return blocks
}

// pages returns all pages of the repository: their paths from its root, and their texts.
func pages(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "node_modules" || path == "../build/out") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, "../")] = string(text)
		return err
	})
	require.NoError(t, err)
	require.Contains(t, all, "README.md")
	require.Contains(t, all, "docs/commands.md")
	return all
}
