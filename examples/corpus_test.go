package examples

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	"gothrottle/tests/corpus"
)

// A client replies and replicates what the transcripts say, where it has a verb for the call.
func TestCorpus(t *testing.T) {
	for language, words := range map[string][]string{
		"node":   {"../build/out/node/node_modules/.bin/node", "../build/out/node/corpus.js"},
		"python": {"../build/out/venv/bin/python", "-I", "../adapters/python/tests/corpus.py"},
	} {
		t.Run(language, func(t *testing.T) { holdToCorpus(t, words) })
	}
}

func holdToCorpus(t *testing.T, words []string) {
	h := &host{t: t}
	s := startServer(t, resp.Options{Now: func() time.Time { return time.UnixMicro(h.now) }})
	h.Memory = &corpus.Memory{Server: s.Memory()}
	h.Observe(func(command []string) { h.effects = append(h.effects, command) })
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = append(os.Environ(), "ADDR="+s.Addr), os.Stderr, time.Second
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	h.to, h.from = in, bufio.NewScanner(out)
	corpus.Run(t, h, "../tests/corpus", corpus.Options{})
	require.Greater(t, h.said, 500, "calls by the client")
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

// host is a server in memory that a client's process calls. It gets the words of a call in a line of JSON and answers with
// the integers of the reply, or null if it has no verb for the call.
type host struct {
	*corpus.Memory
	t       *testing.T
	now     int64
	effects [][]string
	to      io.Writer
	from    *bufio.Scanner
	said    int // calls that the client made
}

func (h *host) Begin(now int64) {
	h.now = now
	h.Memory.Begin(now)
}

func (h *host) Clock(now int64) {
	h.now = now
	h.Memory.Clock(now)
}

func (h *host) Call(words []string) (reply any, effects [][]string) {
	h.effects = nil
	line, err := json.Marshal(words)
	require.NoError(h.t, err)
	if !slices.ContainsFunc(words, func(word string) bool { return !utf8.ValidString(word) }) {
		if ints := h.ask(line); ints != nil {
			h.said++
			return ints, h.effects
		}
	}
	if reply, effects = h.Memory.Call(words); len(h.effects) > 0 && strings.Contains(words[0], ".") {
		effects = h.effects // Observe has one function
	}
	return reply, effects
}

// ask returns what the client answers.
func (h *host) ask(line []byte) (reply []any) {
	_, err := h.to.Write(append(line, '\n'))
	require.NoError(h.t, err)
	require.True(h.t, h.from.Scan(), "the client ended")
	require.NoError(h.t, json.Unmarshal(h.from.Bytes(), &reply))
	return integers(reply)
}

func integers(list []any) []any {
	for i, value := range list {
		switch value := value.(type) {
		case float64:
			list[i] = int64(value)
		case []any:
			integers(value)
		}
	}
	return list
}
