package tests

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No transcript shows threads. Those of the Go runtime have a large timer slack, so that they disturb the main thread of the
// server less. No thread of the server has it.
func TestLoad_onlyGoThreadsWakeLate(t *testing.T) {
	for _, later := range []bool{false, true} {
		s := start(t, options{Bare: later, Args: []string{"--enable-module-command", "yes"}})
		if later {
			s.must("MODULE LOAD " + env.module)
		}
		s.works()
		pid, late := s.info("server", "process_id"), 0
		threads, err := filepath.Glob("/proc/" + pid + "/task/*")
		require.NoError(t, err)
		for _, thread := range threads {
			id := filepath.Base(thread)
			slack, err := os.ReadFile("/proc/" + id + "/timerslack_ns")
			if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") == "" {
				t.Skip("only root may read /proc/PID/timerslack_ns of another process")
			}
			require.NoError(t, err)
			name, err := os.ReadFile(thread + "/comm")
			require.NoError(t, err)
			isLate := strings.TrimSpace(string(slack)) == "10000000"
			if ours := id != pid && !regexp.MustCompile("^(bio_|io_thd)").Match(name); !ours {
				assert.False(t, isLate, "thread %s, %s", id, name)
			} else if isLate {
				late++
			}
		}
		assert.GreaterOrEqual(t, late, 2, "threads that wake late; the module was loaded later: %v", later)
	}
}
