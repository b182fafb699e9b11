package tests

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is the wall clock of a server that was started with it. The server's monotonic clock
// stays the real one. See testdata/clock.c.
type clock struct {
	t    testing.TB
	file *os.File
	env  []string
}

// newClock returns a clock that shows the real time.
func newClock(t testing.TB) *clock {
	t.Helper()
	if env.image != "" {
		t.Skip("the clock of a container cannot be set; the run with local servers has this test")
	}
	library := compile(t, "clock.c")
	file, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	c := &clock{t: t, file: file, env: []string{"LD_PRELOAD=" + library, "GOTHROTTLE_CLOCK=" + file.Name()}}
	c.shift(0)
	return c
}

// startStill starts a server whose clock stands still, so that nothing drains while a test compares replies, however slow
// the machine is. The clock of a container runs.
func startStill(t testing.TB) *server {
	t.Helper()
	if env.image != "" {
		return start(t, options{})
	}
	c := newClock(t)
	c.freeze(time.Now())
	return start(t, options{clock: c})
}

// Valkey 9.1 advances a wall clock that stands still by the monotonic clock. So tests read
// states half a second away from the instants at which replies change.
const halfSecond = 500 * time.Millisecond

// sees waits until the server has seen the time of its clock.
func (s *server) sees(at time.Time) {
	s.t.Helper()
	eventually(s.t, "the server has seen the time", func() bool {
		late := s.now() - at.UnixNano()
		return late >= 0 && late < halfSecond.Nanoseconds()
	})
}

// shift makes the clock show the real time plus d.
func (c *clock) shift(d time.Duration) { c.write(0, d.Microseconds()) }

// freeze stops the clock at a time.
func (c *clock) freeze(at time.Time) { c.write(1, at.UnixMicro()) }

func (c *clock) write(frozen, micros int64) {
	c.t.Helper()
	b := binary.NativeEndian.AppendUint64(nil, uint64(frozen))
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(b, uint64(micros)), 0)
	require.NoError(c.t, err)
}

// compile makes a shared library for the server of a C file in testdata.
func compile(t testing.TB, source string) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), source+".so")
	out, err := exec.Command(env.cc, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", library,
		filepath.Join("testdata", source)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return library
}
