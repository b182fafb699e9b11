package examples

import (
	"os"
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

// Each code block of docs/clients.md is in a program that its section links to, and a test runs that program. The page links
// to each program with a row in the table, each link leads to a file, and its versions are those that Node's programs pin.
func TestClientsPage(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	page, blocks, linked := read("../docs/clients.md"), 0, map[string]bool{}
	require.Equal(t, strings.Count(page, "\n```"), 2*len(pageBlock.FindAllString(page, -1)), "a block without a language")
	require.NotRegexp(t, `(?m)^    `, pageBlock.ReplaceAllString(page, ""), "a block without fences")
	for _, section := range strings.Split(page, "\n## ") {
		programs := ""
		for _, link := range pageLink.FindAllStringSubmatch(section, -1) {
			linked[link[1]] = true
			if text := indent.ReplaceAllString(read(link[1]), ""); tested(link[1]) {
				programs += text
			}
		}
		for _, block := range pageBlock.FindAllStringSubmatch(section, -1) {
			blocks++
			require.Contains(t, programs, indent.ReplaceAllString(block[1], ""), "no tested program has the block")
		}
	}
	require.Greater(t, blocks, 10)
	for _, e := range table {
		require.True(t, linked[e.file] || strings.HasPrefix(e.file, "../adapters/"), "no link to %s", e.file)
	}
	for client, name := range map[string]string{"node-redis": "redis", "ioredis": "ioredis"} {
		said := regexp.MustCompile(`\| ` + client + ` ([0-9.]+) `).FindStringSubmatch(page)
		require.NotNil(t, said, client)
		for _, file := range []string{"node/package.json", "../adapters/node/test/package.json"} {
			require.Contains(t, read(file), `"`+name+`": "`+said[1]+`"`)
		}
	}
}

// tested says whether a test runs a program. make test-examples runs those in Go.
func tested(file string) bool {
	if strings.HasPrefix(file, "go/") {
		return strings.HasSuffix(file, "_test.go")
	}
	return slices.ContainsFunc(table, func(e example) bool { return e.file == file })
}
