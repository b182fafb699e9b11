package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	pageBlock = regexp.MustCompile("(?ms)^```\\w+\n(.*?)^```$")
	pageLink  = regexp.MustCompile(`\]\(\.\./examples/([^)]+)\)`)
	indent    = regexp.MustCompile(`(?m)^\s+`)
)

// Each code block of docs/clients.md stands in a program that its section links to, and a test runs that program.
func TestClientsPage_blocksStandInPrograms(t *testing.T) {
	text, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	page, blocks := string(text), 0
	require.Equal(t, strings.Count(page, "\n```"), 2*len(pageBlock.FindAllString(page, -1)), "a block without a language")
	require.NotRegexp(t, `(?m)^    `, pageBlock.ReplaceAllString(page, ""), "a block without fences")
	for _, section := range strings.Split(page, "\n## ") {
		for _, block := range pageBlock.FindAllStringSubmatch(section, -1) {
			blocks++
			require.True(t, slices.ContainsFunc(pageLink.FindAllStringSubmatch(section, -1), func(link []string) bool {
				program, err := os.ReadFile(link[1])
				require.NoError(t, err)
				return tested(link[1]) && strings.Contains(indent.ReplaceAllString(string(program), ""), indent.ReplaceAllString(block[1], ""))
			}), "no tested program has the block\n%s", block[1])
		}
	}
	require.Greater(t, blocks, 10)
}

// tested says whether a test runs a program. make test-examples runs those in Go. Programs of several files have a row
// for one of them.
func tested(file string) bool {
	if strings.HasPrefix(file, "go/") {
		return strings.HasSuffix(file, "_test.go")
	}
	return slices.ContainsFunc(table, func(e example) bool {
		return e.file == file || filepath.Ext(file) == ".java" && filepath.Dir(e.file) == filepath.Dir(file)
	})
}

// docs/clients.md has the versions of Node's clients that both package.json pin.
func TestClientsPage_versions(t *testing.T) {
	page, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	pins, err := os.ReadFile("node/package.json")
	require.NoError(t, err)
	tested, err := os.ReadFile("../adapters/node/test/package.json")
	require.NoError(t, err)
	for client, name := range map[string]string{"node-redis": "redis", "ioredis": "ioredis"} {
		told := regexp.MustCompile(`\| ` + client + ` ([0-9.]+) `).FindSubmatch(page)
		require.NotNil(t, told, client)
		pin := `"` + name + `": "` + string(told[1]) + `"`
		require.Contains(t, string(pins), pin)
		require.Contains(t, string(tested), pin)
	}
}

// docs/clients.md links to each program with a row in the table, and each link leads to a file.
func TestClientsPage_linksToPrograms(t *testing.T) {
	text, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	linked := map[string]bool{}
	for _, link := range pageLink.FindAllStringSubmatch(string(text), -1) {
		linked[link[1]] = true
		require.FileExists(t, link[1])
	}
	for _, e := range table {
		require.True(t, linked[e.file] || strings.HasPrefix(e.file, "../adapters/"), "no link to %s", e.file)
	}
}
