package tests

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server forks again and again under load, while the Go runtime collects its garbage. Each child ends well, and
// the server goes on. FORKS is the number of forks.
func TestMemory_forks(t *testing.T) {
	memoryOnly(t)
	forks := setting(t, "FORKS", 20)
	s := start(t, options{args: []string{"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--enable-debug-command", "yes"}})
	eventually(t, "the server has no child", s.childless)
	before := s.forks()
	l := newSteadyLoad(s, 1000)
	for n := 0; s.forks() < before+forks; n++ {
		require.Less(t, n, 2*forks, "calls that forked")
		s.forkBesideGarbage([]string{"BGSAVE", "BGREWRITEAOF"}[n%2], n)
		if n%5 == 4 {
			require.NoError(t, s.Do(ctx, "DEBUG", "RELOAD").Err())
		}
	}
	l.stop(t)
	assert.Equal(t, "ok", s.info("persistence", "rdb_last_bgsave_status"))
	assert.Equal(t, "ok", s.info("persistence", "aof_last_bgrewrite_status"))
	used := s.usage()
	t.Logf("%d forks, %d calls beside them; %+v", s.forks()-before, l.calls.Load(), used)
	assert.Equal(t, "0", s.counters()["gothrottle_panics"])
}

// forkBesideGarbage sends, in one pipeline, changes of the policies and the call that forks. So the runtime often
// collects the old policies at the time of the fork.
func (s *server) forkBesideGarbage(call string, n int) {
	s.t.Helper()
	p := s.Pipeline()
	for i := range 10 {
		p.Do(ctx, "CONFIG", "SET", "gothrottle.policies", manyPolicies(10*n+i))
	}
	p.Do(ctx, call)
	for i := range 10 {
		p.Do(ctx, "CONFIG", "SET", "gothrottle.policies", manyPolicies(10*n+i))
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

// forks returns how often the server has forked.
func (s *server) forks() int {
	s.t.Helper()
	n, err := strconv.Atoi(s.info("stats", "total_forks"))
	require.NoError(s.t, err)
	return n
}
