package tests

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// usage is what a server's process takes of the machine.
type usage struct {
	resident, address int64 // bytes of memory, bytes of address space
	threads, files    int   // files are open file descriptors
}

// usage reads /proc. Only local servers have it.
func (s *server) usage() usage {
	s.t.Helper()
	folder := "/proc/" + s.info("server", "process_id")
	status, err := os.ReadFile(folder + "/status")
	require.NoError(s.t, err)
	files, err := os.ReadDir(folder + "/fd")
	require.NoError(s.t, err)
	return usage{
		resident: 1024 * statusField(s.t, string(status), "VmRSS"),
		address:  1024 * statusField(s.t, string(status), "VmSize"),
		threads:  int(statusField(s.t, string(status), "Threads")),
		files:    len(files),
	}
}

// statusField returns the number after a name in the text of /proc/PID/status.
func statusField(t testing.TB, status, name string) int64 {
	t.Helper()
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			require.NoError(t, err, line)
			return n
		}
	}
	t.Fatalf("no %s in %q", name, status)
	return 0
}

// usedMemory returns the bytes that the server's allocator has given out.
func (s *server) usedMemory() int64 {
	s.t.Helper()
	n, err := strconv.ParseInt(s.info("memory", "used_memory"), 10, 64)
	require.NoError(s.t, err)
	return n
}

// memoryOnly skips a test unless build/test-memory.sh runs it: it is long, or needs much memory.
func memoryOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("GOTHROTTLE_MEMORY") == "" || env.image != "" {
		t.Skip("make test-memory runs this test")
	}
}

// setting returns a whole number of the environment, or otherwise when the variable is empty.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	require.NoError(t, err, name)
	require.Positive(t, n, name)
	return n
}

// growth says by how much a quantity grew over all samples, which are equally far apart: the median
// slope of all pairs (Theil and Sen), times the length. Up to a quarter of the samples may be outliers.
func growth(samples []int64) int64 {
	var slopes []float64
	for i, a := range samples {
		for j, b := range samples[i+1:] {
			slopes = append(slopes, float64(b-a)/float64(j+1))
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return int64(median(slopes) * float64(len(samples)-1))
}

// median returns the middle one of the values, the upper one of two. It sorts them.
func median[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
