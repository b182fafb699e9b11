package examples

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
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
	require.Greater(t, blocks, 9)
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

// The lines of README.md for Node and Python run as they are: the first call is admitted, and one after 15 more is denied.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for language, run := range map[string]struct{ program, file, end string }{
		"js":     {"../build/out/node/node_modules/.bin/node", "../build/out/node/readme.mjs", "process.exit();\n"},
		"python": {"../build/out/venv/bin/python", "../build/out/readme.py", ""},
	} {
		t.Run(language, func(t *testing.T) {
			s := startServer(t, resp.Options{Now: stopped()})
			lines := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(string(page))
			require.NotNil(t, lines)
			require.NoError(t, os.WriteFile(run.file, []byte(strings.Replace(lines[1], "127.0.0.1:6379", s.Addr, 1)+run.end), 0o600))
			for _, want := range []string{"200, 15 left", "429, try again in "} {
				said, err := exec.Command(run.program, run.file).CombinedOutput()
				require.NoError(t, err, "%s", said)
				require.Contains(t, string(said), want)
				s.do("GO.THROTTLE", "user:42", "15", "30", "1m", "15")
			}
		})
	}
}

// tested says whether a test runs a program. make test-examples runs those in Go.
func tested(file string) bool {
	if strings.HasPrefix(file, "go/") {
		return strings.HasSuffix(file, "_test.go")
	}
	return slices.ContainsFunc(table, func(e example) bool { return e.file == file })
}
