package tests

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The threads of the Go runtime have a large timer slack, so that they disturb the main
// thread of the server less. No thread of the server has it.
func TestLoad_onlyGoThreadsWakeLate(t *testing.T) {
	localOnly(t)
	const late = "10000000"
	for _, whileRunning := range []bool{false, true} {
		s := start(t, options{bare: whileRunning, args: []string{"--enable-module-command", "yes"}})
		if whileRunning {
			require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
		}
		require.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
		pid := s.info("server", "process_id")
		threads, err := filepath.Glob("/proc/" + pid + "/task/*")
		require.NoError(t, err)
		waking := 0
		for _, thread := range threads {
			id := filepath.Base(thread)
			slack, err := os.ReadFile("/proc/" + id + "/timerslack_ns")
			if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") == "" {
				t.Skip("only root may read /proc/PID/timerslack_ns of another process")
			}
			require.NoError(t, err)
			name, err := os.ReadFile(thread + "/comm")
			require.NoError(t, err)
			isLate := strings.TrimSpace(string(slack)) == late
			if id == pid || strings.HasPrefix(string(name), "bio_") || strings.HasPrefix(string(name), "io_thd") {
				assert.False(t, isLate, "thread %s, %s", id, name)
			} else if isLate {
				waking++
			}
		}
		assert.GreaterOrEqual(t, waking, 2, "threads that may wake late, loaded while running: %v", whileRunning)
	}
}
