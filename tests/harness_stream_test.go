package tests

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stream reads what a server sends to a replica.
type stream struct {
	master *server
	w      *wire
	marks  int
}

// effect is one command of the stream and its length in bytes.
type effect struct {
	words []string
	size  int
}

func asEffect(reply []any, size int) effect {
	e := effect{size: size}
	for _, word := range reply {
		e.words = append(e.words, word.(string))
	}
	return e
}

func (e effect) String() string { return strings.Join(e.words, " ") }

// effectsIn returns the commands of an append-only file.
func effectsIn(t testing.TB, file string) (all []effect) {
	t.Helper()
	w := &wire{t: t, in: bufio.NewReader(strings.NewReader(file))}
	for w.read < len(file) {
		before := w.read
		reply, err := w.value()
		require.NoError(t, err)
		all = append(all, asEffect(reply.([]any), w.read-before))
	}
	return all
}

// replicate connects to s as a replica does and reads past the snapshot.
func (s *server) replicate() *stream {
	s.t.Helper()
	w := s.wire()
	w.sendRaw([]byte("PSYNC ? -1\r\n"))
	require.NoError(s.t, w.conn.SetReadDeadline(time.Now().Add(patience)))
	header := ""
	for header == "" || header[0] != '$' { // +FULLRESYNC, and empty lines while the server forks
		line, err := w.in.ReadString('\n')
		require.NoError(s.t, err)
		header = strings.TrimSpace(line)
	}
	var n int64
	_, err := fmt.Sscanf(header, "$%d", &n)
	require.NoError(s.t, err, header)
	_, err = io.CopyN(io.Discard, w.in, n)
	require.NoError(s.t, err)
	st := &stream{master: s, w: w}
	st.since() // the server sends SELECT before the first command
	return st
}

// since returns the commands that were replicated since the last call of since. It publishes
// a mark, which is replicated too, and reads until the mark arrives. So an empty result means
// that nothing was replicated.
func (st *stream) since() []effect {
	st.master.t.Helper()
	st.marks++
	mark := fmt.Sprintf("mark %d", st.marks)
	require.NoError(st.master.t, st.master.Publish(ctx, "marks", mark).Err())
	var all []effect
	for {
		before := st.w.read
		reply, ok := st.w.next().([]any)
		require.True(st.master.t, ok)
		e := asEffect(reply, st.w.read-before)
		switch name := strings.ToUpper(e.words[0]); {
		case name == "PING" || name == "SELECT":
		case name == "PUBLISH" && e.words[2] == mark:
			return all
		default:
			all = append(all, e)
		}
	}
}

// texts returns the commands as text. It replaces times, which differ in every run.
func texts(effects []effect) []string {
	all := []string{}
	for _, e := range effects {
		words := slices.Clone(e.words)
		for i := 2; i < len(words); i++ {
			switch name, before := words[0], words[i-1]; {
			case name == "PEXPIREAT", name == "ZADD" && i == 2, before == "PXAT",
				name == "HSET" && i%2 == 1 && isTime(before):
				words[i] = "<time>"
			case name == "SET" && i == 2:
				used, _, _ := strings.Cut(words[i], "@")
				words[i] = used + "@<time>"
			}
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// isTime says whether a field of a hash holds the TAT of a cell (0, 4, 8 and so on to 124) or the
// end of its lockout (128 and so on).
func isTime(field string) bool {
	n, err := strconv.Atoi(field)
	return err == nil && (n >= 128 || n%4 == 0)
}

// admission is one admitted call: its time in µs and its units.
type admission struct{ at, units int64 }

// admissions returns the admitted calls of windows. The units of a call are what its ZADD
// adds to the running total of its key.
func admissions(t *testing.T, effects []effect) (all []admission) {
	t.Helper()
	totals := map[string]int64{}
	for _, e := range effects {
		if e.words[0] == "DEL" || e.words[0] == "UNLINK" {
			delete(totals, e.words[1]) // the server deletes an expired key at any time
		}
		if e.words[0] != "ZADD" {
			continue
		}
		at, err := strconv.ParseInt(e.words[2], 10, 64)
		require.NoError(t, err)
		first, _, _ := strings.Cut(e.words[3][1:], ":")
		next, err := strconv.ParseInt(first, 36, 64)
		require.NoError(t, err)
		all = append(all, admission{-at, next - totals[e.words[1]]})
		totals[e.words[1]] = next
	}
	return all
}
