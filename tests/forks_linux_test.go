package tests

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// debugForked makes a call of each command, and then many of GO.TOP, in a script under SCRIPT DEBUG YES. It returns the
// distinct error texts, and the calls that were no error.
func (s *server) debugForked() string {
	s.t.Helper()
	const script = `local calls, seen, all = {}, {}, {}
		for _, line in ipairs(ARGV) do calls[#calls + 1] = line end
		for n = 1, 300 do calls[#calls + 1] = 'GO.TOP 10000' end
		for _, line in ipairs(calls) do
			local words = {}
			for word in line:gmatch('%S+') do words[#words + 1] = word end
			local reply = redis.pcall(unpack(words))
			local text = type(reply) == 'table' and reply.err or line
			if not seen[text] then all[#all + 1] = text end
			seen[text] = true
		end
		return table.concat(all, '; ')`
	eval := []any{"EVAL", script, 0}
	for _, row := range commands.Table {
		eval = append(eval, strings.ReplaceAll(corpus.Samples[row.Name].Call, "KEY", "k"))
	}
	conn, err := net.Dial("tcp", s.run.Addr)
	require.NoError(s.t, err)
	defer conn.Close()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	text := fmt.Sprintf("SCRIPT DEBUG YES\r\n*%d\r\n", len(eval))
	for _, word := range eval {
		text += fmt.Sprintf("$%d\r\n%v\r\n", len(fmt.Sprint(word)), word)
	}
	_, err = conn.Write([]byte(text))
	require.NoError(s.t, err)
	in := bufio.NewReader(conn)
	for line := ""; !strings.HasPrefix(line, "+-> 1"); { // the child stops at the first line
		line, err = in.ReadString('\n')
		require.NoError(s.t, err)
	}
	_, err = conn.Write([]byte("*1\r\n$8\r\ncontinue\r\n"))
	require.NoError(s.t, err)
	out, err := io.ReadAll(in)
	require.NoError(s.t, err, "the script has not ended: %s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\r\n")
	return lines[len(lines)-1]
}

// SCRIPT DEBUG YES runs a script in a forked child, where Go cannot run: each command says so.
func TestFork_scriptDebug(t *testing.T) {
	s := start(t, options{})
	assert.Equal(t, commands.ErrForked.Text(), s.debugForked())
	assert.Equal(t, "[0 2 1 -1 1]", s.must("GO.THROTTLE k 1 1 1"))
}

// The server forks again and again under load, while the Go runtime collects its garbage. Each child ends well, and
// the server goes on. FORKS is the number of forks.
func TestMemory_forks(t *testing.T) {
	memoryOnly(t)
	forks := setting(t, "FORKS", 20)
	s := start(t, options{Args: []string{"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--enable-debug-command", "yes"}})
	eventually(t, "the server has no child", s.childless)
	forked := func() int64 { return s.number("stats", "total_forks") }
	before := forked()
	calls, stop := s.steadyLoad(1000)
	for n := 0; forked() < before+int64(forks); n++ {
		require.Less(t, n, 2*forks, "calls that forked")
		s.forkBesideGarbage([]string{"BGSAVE", "BGREWRITEAOF"}[n%2], n)
		require.Equal(t, commands.ErrForked.Text(), s.debugForked())
		if n%5 == 4 {
			require.NoError(t, s.Do(ctx, "DEBUG", "RELOAD").Err())
		}
	}
	stop()
	assert.Equal(t, "ok", s.info("persistence", "rdb_last_bgsave_status"))
	assert.Equal(t, "ok", s.info("persistence", "aof_last_bgrewrite_status"))
	used := s.usage()
	t.Logf("%d forks, %d calls beside them; %+v", forked()-before, calls.Load(), used)
	assert.Equal(t, "0", s.info("gothrottle", "gothrottle_panics"))
}

// forkBesideGarbage sends, in one pipeline, changes of the policies and the call that forks. So the runtime often
// collects the old policies at the time of the fork.
func (s *server) forkBesideGarbage(call string, n int) {
	s.t.Helper()
	p := s.Pipeline()
	for i := range 20 {
		if i == 10 {
			p.Do(ctx, call)
		}
		p.Do(ctx, "CONFIG", "SET", "gothrottle.policies", manyPolicies(20*n+i))
	}
	_, err := p.Exec(ctx)
	require.NoError(s.t, err)
	eventually(s.t, "the child of "+call+" has ended", s.childless)
}

// childless says whether no child saves or rewrites, and none is left in the process table.
func (s *server) childless() bool {
	for _, field := range []string{"rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"} {
		if s.info("persistence", field) != "0" {
			return false
		}
	}
	pid := s.info("server", "process_id")
	children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	return err == nil && strings.TrimSpace(string(children)) == ""
}
