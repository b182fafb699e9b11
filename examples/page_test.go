package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

var (
	pageBlock = regexp.MustCompile("(?ms)^```\\w+\n(.*?)^```$")
	pageLink  = regexp.MustCompile(`\]\(\.\./examples/([^)]+)\)`)
	indent    = regexp.MustCompile(`(?m)^\s+`)
	number    = regexp.MustCompile(`-?\d+`)
)

// inMemory is the section whose blocks run as they are.
const inMemory = "Test against a server in memory\n"

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// Each code block of docs/clients.md is in a program that its section links to, and a test runs that program. The page links
// to each program with a row in the table, each link leads to a file, and its versions are those that Node's programs pin.
func TestClientsPage(t *testing.T) {
	page, blocks, linked := read(t, "../docs/clients.md"), 0, map[string]bool{}
	require.Equal(t, strings.Count(page, "\n```"), 2*len(pageBlock.FindAllString(page, -1)), "a block without a language")
	require.NotRegexp(t, `(?m)^    `, pageBlock.ReplaceAllString(page, ""), "a block without fences")
	for _, section := range strings.Split(page, "\n## ") {
		if strings.HasPrefix(section, inMemory) {
			continue
		}
		programs := ""
		for _, link := range pageLink.FindAllStringSubmatch(section, -1) {
			linked[link[1]] = true
			if text := indent.ReplaceAllString(read(t, link[1]), ""); tested(link[1]) {
				programs += text
			}
		}
		for _, block := range pageBlock.FindAllStringSubmatch(section, -1) {
			blocks++
			require.Contains(t, programs, indent.ReplaceAllString(block[1], ""), "no tested program has the block")
		}
	}
	require.Greater(t, blocks, 7)
	for _, e := range table {
		require.True(t, linked[e.file] || strings.HasPrefix(e.file, "../adapters/"), "no link to %s", e.file)
	}
	for client, name := range map[string]string{"node-redis": "redis", "ioredis": "ioredis"} {
		said := regexp.MustCompile(`\| ` + client + ` ([0-9.]+) `).FindStringSubmatch(page)
		require.NotNil(t, said, client)
		for _, file := range []string{"node/package.json", "../adapters/node/test/package.json"} {
			require.Contains(t, read(t, file), `"`+name+`": "`+said[1]+`"`)
		}
	}
}

// languages are those of lines that run as they are on a page, in the repository's root.
var languages = map[string][]string{
	"js":     {"build/out/node/node_modules/.bin/node", "build/out/node/page.mjs"},
	"python": {"build/out/venv/bin/python", "build/out/venv/page.py"},
}

// block returns the first block of a language in a text.
func block(t *testing.T, text, language string) string {
	lines := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(text)
	require.NotNil(t, lines)
	return lines[1]
}

// runPage runs the first block of a language in a text, with another server, and returns what it prints.
func runPage(t *testing.T, text, language, addr string) string {
	program := languages[language]
	require.NoError(t, os.WriteFile("../"+program[1], []byte(strings.Replace(block(t, text, language), "127.0.0.1:6379", addr, 1)), 0o600))
	return run(t, "..", program[0], program[1])
}

// The programs of README.md run as a reader pastes them into an empty folder: the first call is admitted, and one after 15 more
// is denied.
func TestReadme(t *testing.T) {
	servers.Needed(t, "test-languages")
	readme := read(t, "../README.md")
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	server := filepath.Join(t.TempDir(), "server")
	run(t, ".", "go", "build", "-o", server, "../commands/memory/serve")
	for language, want := range map[string]struct{ file, program, admitted, denied string }{
		"go":     {"main.go", "go run .", "true 15 0s <nil>", "false 0 "},
		"js":     {"limit.mjs", "node_modules/.bin/node limit.mjs", "200, 15 left", "429, try again in "},
		"python": {"limit.py", root + "/build/out/venv/bin/python limit.py", "200, 15 left", "429, try again in "},
	} {
		t.Run(language, func(t *testing.T) {
			beside := t.TempDir()
			folder := filepath.Join(beside, "hello")
			require.NoError(t, os.Mkdir(folder, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(folder, want.file), []byte(block(t, readme, language)), 0o600))
			switch language {
			case "go":
				require.NoError(t, os.Symlink(root, filepath.Join(beside, "gothrottle")))
				for _, line := range regexp.MustCompile("`go (mod [^`]*)`").FindAllStringSubmatch(readme, -1) {
					run(t, folder, "go", strings.Fields(line[1])...)
				}
			case "js": // what npm install $(../gothrottle/build/package-node.sh) redis installs
				require.NoError(t, os.Symlink(root+"/build/out/node/node_modules", filepath.Join(folder, "node_modules")))
			}
			said := run(t, folder, "unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "bash", "-ec", onPort6379, server, want.program)
			first, second, _ := strings.Cut(said, "\n")
			require.Contains(t, first, want.admitted)
			require.Contains(t, second, want.denied)
		})
	}
}

// onPort6379 runs a program twice in a network of its own, in which a server in memory has the port that the pages name. In
// between, 15 units are taken.
const onPort6379 = `ip link set lo up; exec 3< <("$0" -port 6379 </dev/zero); read -r _ <&3; $1; exec 4<>/dev/tcp/127.0.0.1/6379
printf '*6\r\n$11\r\nGO.THROTTLE\r\n$7\r\nuser:42\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n1m\r\n$2\r\n15\r\n' >&4; read -r _ <&4; $1`

func run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return string(said)
}

// The lines of docs/clients.md that start a server in memory run.
func TestClientsPage_memory(t *testing.T) {
	servers.Needed(t, "test-languages")
	_, section, _ := strings.Cut(read(t, "../docs/clients.md"), inMemory)
	said := runPage(t, section, "python", "")
	require.Equal(t, "0 1 0 -1 3600 0 1 0 -1 3600", strings.Join(number.FindAllString(said, -1), " "))
	require.Contains(t, said, "no decision")
}

// tested says whether a test runs a program. make test-examples runs those in Go.
func tested(file string) bool {
	if strings.HasPrefix(file, "go/") {
		return strings.HasSuffix(file, "_test.go")
	}
	return slices.ContainsFunc(table, func(e example) bool { return e.file == file })
}
