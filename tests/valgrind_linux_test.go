package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// goFunctions are names of functions of Go. Memcheck reports errors in them wrongly: Go's assembly reads strings in
// steps, and so past their end, and memcheck takes the switch from one goroutine's stack to another for the end of
// what lies between. C functions of the module have none of these names: _cgoexp_… is the Go side of a call from C, which
// C enters by a function of another name. So errors of C code are reported, even where Go calls it.
var goFunctions = []string{"*body", "runtime.*", "runtime/*", "internal/*", "gothrottle/*", "_cgoexp_*", "str*.*", "sync*.*",
	"unicode/*", "math/*", "slices.*", "sort.*", "errors.*", "reflect.*", "fmt.*"}

// makeTranscripts makes the calls of all transcripts, each case in a database of its own, in turns as a pipeline, a transaction
// and scripts.
func (s *server) makeTranscripts() {
	s.t.Helper()
	for i, c := range corpus.Cases {
		p := s.Pipeline()
		p.Do(ctx, "SELECT", i)
		if i%3 == 1 {
			p.Do(ctx, "MULTI")
		}
		for _, step := range c.Steps {
			words, err := corpus.Words(step.Text, time.Now().Unix()*1e6)
			require.NoError(s.t, err)
			if i%3 == 2 {
				words = append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}, words...)
			}
			if step.Call {
				p.Do(ctx, corpus.Args(words)...)
			}
		}
		if i%3 == 1 {
			p.Do(ctx, "EXEC")
		}
		p.Do(ctx, "SELECT", 0)
		cmds, _ := p.Exec(ctx)
		require.NoError(s.t, cmds[0].Err())
	}
}

// Valgrind sees no error and no leak of the module's C code in a real server, in the calls of all transcripts. The module has
// its symbols here, so that errors inside the Go runtime can be distinguished from others.
func TestMemory_valgrind(t *testing.T) {
	memoryOnly(t)
	folder, text := t.TempDir(), ""
	for _, function := range goFunctions {
		for _, kind := range []string{"Addr1", "Addr2", "Addr4", "Addr8", "Addr16", "Addr32", "Cond", "Value1", "Value2", "Value4", "Value8", "Value16"} {
			text += fmt.Sprintf("{\n%s in %s\nMemcheck:%s\nfun:%s\n}\n", kind, function, kind, function)
		}
	}
	suppressed, report := filepath.Join(folder, "suppressed"), filepath.Join(folder, "report")
	require.NoError(t, os.WriteFile(suppressed, []byte(text), 0o644))
	s := start(t, options{Module: buildModule(t, "-ldflags=-w"), // valgrind cannot read what Go writes for debuggers
		Before: append(strings.Fields("valgrind -s --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite"),
			"--num-callers=20", "--suppressions="+suppressed, "--log-file="+report), Args: []string{"--databases", "1000"}})
	s.makeTranscripts()
	for n := range 20 {
		s.setPolicies(manyPolicies(n))
		s.must("CONFIG SET gothrottle.top-keys 10")
		_ = s.Do(ctx, "GO.POLICY", "api:bob")
		s.must("GO.TOP 5")
		s.must("CONFIG SET gothrottle.top-keys 0")
		s.must("INFO gothrottle")
	}
	s.run.Terminate()
	b, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(b), "LEAK SUMMARY", "valgrind cannot follow a server that a script starts")
	clean := strings.Contains(string(b), " definitely lost: 0 bytes in 0 blocks\n") &&
		strings.Contains(string(b), " ERROR SUMMARY: 0 errors from 0 contexts ")
	assert.True(t, clean, "valgrind reports errors or leaks: %s", b[:min(len(b), 10_000)])
	t.Log(servers.Tail(string(b), 20))
}
