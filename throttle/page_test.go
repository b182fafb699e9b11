package throttle_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// blocksOfPage returns the Go programs and the Go snippets of the pages.
func blocksOfPage(t *testing.T) (programs, snippets []string) {
	t.Helper()
	page := must(os.ReadFile("../docs/go.md"))
	for _, file := range []string{"../docs/go.md", "../README.md"} {
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(must(os.ReadFile(file))), -1) {
			if strings.HasPrefix(m[1], "package main\n") {
				programs = append(programs, m[1])
			} else {
				snippets = append(snippets, m[1])
			}
		}
	}
	require.NotEmpty(t, programs)
	require.Greater(t, len(snippets), 5)
	require.Equal(t, strings.Count(string(page), "\n```go\n"), strings.Count(string(page), "\n```\n"), "a block is not Go")
	return programs, snippets
}

// runGo runs a command of go in this folder, so that files elsewhere may import this repository.
func runGo(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// Each snippet compiles and runs, on a server in memory. With -short the compiler only checks it, as it always checks the programs:
// linking takes long.
func TestPage_snippets(t *testing.T) {
	programs, snippets := blocksOfPage(t)
	for _, program := range programs {
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o644))
		runGo(t, "vet", file)
	}
	text := `package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"gothrottle/throttle"
	"gothrottle/throttle/throttlehttp"
	"gothrottle/throttle/throttletest"
)

var (
	work = func(context.Context) error { return nil }
	job  = func(context.Context, int64) error { return nil }
	_    = errors.Is
	_    = time.Now
	_    = synctest.Test
	_    http.Handler
	_    throttlehttp.Rule
	rdb  = throttletest.NewServer()
)
`
	for i, snippet := range snippets {
		used := "" // Go refuses variables that nobody uses
		for _, m := range regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`).FindAllStringSubmatch(snippet, -1) {
			for _, name := range strings.Split(m[1], ", ") {
				if name != "_" {
					used += "_ = " + name + "\n"
				}
			}
		}
		text += fmt.Sprintf("\nfunc TestSnippet%d(t *testing.T) {\n\tctx := context.Background()\n"+
			"\tclient, _ := throttle.New(throttletest.NewServer())\n\trun := func() error {\n\t\t_, _ = ctx, client\n%s\n%s\nreturn nil\n\t}\n"+
			"\tif err := run(); err != nil {\n\t\tt.Error(err)\n\t}\n}\n", i, snippet, used)
	}
	file := filepath.Join(t.TempDir(), "page_test.go")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	if testing.Short() {
		runGo(t, "vet", "-unreachable=false", file)
		return
	}
	out := runGo(t, "test", "-v", file)
	require.Equal(t, len(snippets), strings.Count(out, "--- PASS: TestSnippet"))
	for _, m := range regexp.MustCompile(`fmt\.Println\(.*\) // (.*)`).FindAllStringSubmatch(strings.Join(snippets, ""), -1) {
		require.Contains(t, out, m[1]+"\n")
	}
}

// The names that docs/go.md has in its text and tables are exported, but for those of other packages and programs.
func TestPage_namesInTheText(t *testing.T) {
	page, mod := string(must(os.ReadFile("../docs/go.md"))), string(must(os.ReadFile("../go.mod")))
	path, _, _ := strings.Cut(strings.TrimPrefix(mod, "module "), "\n")
	require.Contains(t, page, "\t\""+path+"/throttle\"\n")
	names := "Hour Second Millisecond ListenAndServe ROUNDS "
	for _, folder := range []string{".", "./throttlehttp", "./throttletest", "./redisrate"} {
		names += runGo(t, "doc", "-all", folder)
	}
	text := regexp.MustCompile("(?s)```go\n.*?```").ReplaceAllString(page, "")
	found := 0
	for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile(`\b[A-Z]\w+`).FindAllString(span[1], -1) {
			found++
			require.True(t, regexp.MustCompile(`\b`+name+`\b`).MatchString(names), span[1])
		}
	}
	require.Greater(t, found, 40)
}

// The program of docs/go.md limits requests on a real server as the page says.
func TestServer_programOfThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	s := startServer(t)
	programs, _ := blocksOfPage(t)
	for _, program := range programs {
		if !strings.Contains(program, "127.0.0.1:8080") { // README's ends: a test of the examples runs it
			continue
		}
		addr := "127.0.0.1:" + servers.FreePort()
		program = strings.NewReplacer("127.0.0.1:6379", s.Addr, "127.0.0.1:8080", addr).Replace(program)
		if byScript {
			program = strings.Replace(program, `"redis://`+s.Addr+`"`, `"redis://`+s.Addr+`", throttle.Script()`, 1)
		}
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o644))
		runGo(t, "build", "-o", file+".program", file)
		cmd := exec.Command(file + ".program")
		servers.Background(t, cmd)
		// On a busy machine a call may last longer than its limit. Then its request goes on and takes nothing.
		retry, rdb := "", goRedis(t, s.Addr)
		require.NoError(t, servers.Await("15 of 16 requests served", func() bool {
			assert.NoError(t, rdb.FlushAll(background).Err())
			for served := 0; served < 50; served++ {
				response, err := http.Get("http://" + addr)
				if err != nil {
					return false
				}
				_ = response.Body.Close()
				if retry = response.Header.Get("Retry-After"); response.StatusCode != http.StatusOK {
					return served == 15 && response.StatusCode == http.StatusTooManyRequests
				}
			}
			return false
		}))
		require.Contains(t, []string{"1", "2"}, retry)
	}
}
