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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stream is what a replica of a server is sent, as it is sent.
type stream struct {
	master *server
	w      *wire
	marks  int
}

// effect is one command of the stream and its length there, in bytes.
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

// effectsIn reads the commands that a file consists of.
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

// replicate attaches to s as a replica would and reads past the snapshot.
func (s *server) replicate() *stream {
	s.t.Helper()
	w := s.wire()
	w.sendRaw([]byte("PSYNC ? -1\r\n"))
	require.NoError(s.t, w.conn.SetReadDeadline(time.Now().Add(patience)))
	header := ""
	for header == "" || header[0] != '$' { // +FULLRESYNC and, while it forks, empty lines
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
	st.since() // the first command brings a SELECT along
	return st
}

// since returns what was replicated since it was last called. A mark that is itself
// replicated tells where that ends: an empty answer is an empty stream.
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

// texts returns the commands alone, with what is different in every run struck out.
func texts(effects []effect) []string {
	all := []string{}
	for _, e := range effects {
		words := slices.Clone(e.words)
		for i := 2; i < len(words); i++ {
			switch name, before := words[0], words[i-1]; {
			case name == "PEXPIREAT", name == "ZADD" && i == 2, before == "PXAT",
				name == "HSET" && i%2 == 1 && isTAT(before):
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

// isTAT tells whether a field of a hash holds the TAT of a cell: 0, 4, 8 and so on.
func isTAT(field string) bool {
	n, err := strconv.Atoi(field)
	return err == nil && n%4 == 0
}

func TestStream_effectsOnly(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--appendonly", "yes",
		"--shutdown-timeout", "0"}})
	st := s.replicate()
	var inAOF []string
	for _, c := range []struct {
		name, call string
		want       []string
	}{
		// What changes nothing says nothing.
		{"a peek of nothing", "k 99 100 360000 0", nil},
		{"a refund of nothing", "k 99 100 360000 -1", nil},
		{"above the limit", "k 99 100 360000 101", nil},
		{"an error", "k x 100 360000", nil},
		// The first call names the rate and the expiry, the next the TAT alone.
		{"a new key", "k 99 100 360000 1", []string{
			"MULTI", "HSET k 0 <time> 1 3600", "PEXPIREAT k <time>", "EXEC"}},
		{"admitted", "k 99 100 360000 1", []string{"HSET k 0 <time>"}},
		{"admitted again", "k 99 100 360000 1", []string{"HSET k 0 <time>"}},
		{"a peek", "k 99 100 360000 0", nil},
		{"denied", "k 99 100 360000 98", nil},
		{"denied with another burst", "k 1 100 360000 1", nil},
		{"denied, never to be admitted", "k 99 100 360000 101", nil},
		{"an error on a limiter", "k 99 100 360000 1 x", nil},
		{"a refund", "k 99 100 360000 -1", []string{"HSET k 0 <time>"}},
		{"a larger step, the expiry follows", "k 99 100 360000 98", []string{
			"MULTI", "HSET k 0 <time>", "PEXPIREAT k <time>", "EXEC"}},
		{"denied at the end", "k 99 100 360000 1", nil},
		// Another rate is written by the first call that brings it, also if it is
		// denied: the one write of a denied call.
		{"denied with a new rate", "k 99 100 6000 1", []string{
			"MULTI", "HSET k 0 <time> 1 60", "PEXPIREAT k <time>", "EXEC"}},
		{"denied at this rate", "k 99 100 6000 1", nil},
		{"a peek at yet another rate", "k 99 100 3000 0", nil},
		{"a limited peek at yet another rate", "k 9 100 3000 0", nil},
		// Full again: nothing is left.
		{"a refund to full", "k 99 100 6000 -100", []string{"DEL k"}},
		// A count that does not divide the period takes two more fields.
		{"a fraction", "f 99 7 360000 1", []string{
			"MULTI", "HSET f 0 <time> 1 360000 2 3 3 7", "PEXPIREAT f <time>", "EXEC"}},
		{"a fraction, admitted", "f 99 7 360000 1", []string{"HSET f 0 <time> 2 6"}},
		{"a fraction, denied", "f 99 7 360000 99", nil},
		{"no fraction any more", "f 99 1 360000 1", []string{
			"MULTI", "HSET f 0 <time>", "HDEL f 2 3", "PEXPIREAT f <time>", "EXEC"}},
	} {
		s.Do(ctx, append([]any{"GO.THROTTLE"}, fields(c.call)...)...)
		got := st.since()
		if c.want == nil {
			c.want = []string{}
		}
		assert.Equal(t, c.want, texts(got), c.name)
		for _, e := range got {
			inAOF = append(inAOF, e.String())
		}
	}

	// The append-only file says the same, and nothing of the calls.
	require.NotEmpty(t, inAOF)
	s.terminate()
	file := s.data.read(t, "appendonlydir/*.incr.aof")
	var logged []string
	for _, e := range effectsIn(t, file) {
		if e.words[0] != "SELECT" {
			logged = append(logged, e.String())
		}
	}
	assert.Equal(t, inAOF, logged)
	assert.NotContains(t, strings.ToUpper(file), "THROTTLE")
}

// One call in the middle of a transaction or a script adds its effect to theirs.
func TestStream_withinTransactionsAndScripts(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no"}})
	st := s.replicate()
	s.throttle("k", 99, 100, 360000)
	st.since()

	p := s.TxPipeline()
	p.Do(ctx, "GO.THROTTLE", "k", 99, 100, 360000)
	p.Do(ctx, "GO.THROTTLE", "k", 99, 100, 360000, 0)
	p.Do(ctx, "GO.THROTTLE", "k", 99, 100, 360000)
	_, err := p.Exec(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"MULTI", "HSET k 0 <time>", "HSET k 0 <time>", "EXEC"}, texts(st.since()))

	script := `for i = 1, 120 do redis.call('GO.THROTTLE', KEYS[1], 99, 100, 360000) end`
	s.Eval(ctx, script, []string{"k"})
	got := texts(st.since())
	assert.Contains(t, got, "HSET k 0 <time>")
	for _, text := range got {
		assert.NotContains(t, strings.ToUpper(text), "THROTTLE")
		assert.NotContains(t, text, "EVAL")
	}
	s.Eval(ctx, script, []string{"k"}) // all denied
	assert.Empty(t, texts(st.since()))
}

// In the steady state a call costs a replica one short command.
func TestStream_steadyStateIsOneShortCommand(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no"}})
	st := s.replicate()
	for _, call := range [][]any{ // keys of 13 bytes
		fields("user:12345678 999 1000 60"),
		fields("user:87654321 999 700 60001"), // the count does not divide the period: fields 0 and 2
	} {
		s.throttle(call...)
		st.since()
		for range 20 {
			require.Equal(t, int64(0), s.throttle(call...)[0])
			got := st.since()
			require.Len(t, got, 1, "%v", got)
			assert.Equal(t, "HSET", got[0].words[0])
			assert.LessOrEqual(t, got[0].size, 90, "%q", got[0].words)
		}
	}
}

// Effects count as changes for the save points, calls without effect do not.
func TestStream_effectsCountForSavePoints(t *testing.T) {
	s := start(t, options{}) // nobody listens: neither a replica nor a file
	changes := func() int {
		var n int
		_, err := fmt.Sscan(s.info("persistence", "rdb_changes_since_last_save"), &n)
		require.NoError(t, err)
		return n
	}
	for _, c := range []struct {
		call    string
		changes bool
	}{
		{"k 1 1 3600 0", false},
		{"k 1 1 3600 3", false},
		{"k 1 1 3600 1", true},
		{"k 1 1 3600 1", true},
		{"k 1 1 3600 1", false},
		{"k 1 1 3600 0", false},
		{"k 1 x 3600 1", false},
		{"k 1 1 1800 1", true},
		{"k 1 1 1800 -2", true},
		{"k 1 1 1800 -2", false},
	} {
		before := changes()
		s.Do(ctx, append([]any{"GO.THROTTLE"}, fields(c.call)...)...)
		assert.Equal(t, c.changes, changes() > before, c.call)
	}
}

// A key that had expired is the server's own to delete; the call then finds nothing.
func TestStream_expiredKeyIsDeletedByTheServer(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--enable-debug-command", "yes",
		"--lazyfree-lazy-expire", "no"}}) // Valkey says UNLINK where it is on, as it is there by default
	st := s.replicate()
	require.NoError(t, s.Do(ctx, "DEBUG", "SET-ACTIVE-EXPIRE", 0).Err())
	s.throttle("k", 0, 1, 3600)
	s.PExpire(ctx, "k", time.Millisecond)
	time.Sleep(5 * time.Millisecond)
	st.since()
	assert.Equal(t, []int64{0, 1, 1, -1, 0}, s.throttle("k", 0, 1, 3600, 0))
	assert.Equal(t, []string{"DEL k"}, texts(st.since()))
}
