package tests

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No transcript shows what a server's process takes of the machine.
type usage struct {
	used              int64 // bytes that the server's allocator has given out
	resident, address int64 // bytes of memory, bytes of address space
	threads, files    int64 // files are open file descriptors
}

// usage reads INFO and /proc, which only local servers have.
func (s *server) usage() usage {
	s.t.Helper()
	folder := "/proc/" + s.info("server", "process_id")
	status, err := os.ReadFile(folder + "/status")
	require.NoError(s.t, err)
	files, err := os.ReadDir(folder + "/fd")
	require.NoError(s.t, err)
	field := func(name string) (n int64) {
		_, after, _ := strings.Cut(string(status), "\n"+name+":")
		_, err := fmt.Sscan(after, &n)
		require.NoError(s.t, err, name)
		return n
	}
	return usage{used: s.number("memory", "used_memory"), resident: 1024 * field("VmRSS"), address: 1024 * field("VmSize"),
		threads: field("Threads"), files: int64(len(files))}
}

// number returns one field of an INFO section.
func (s *server) number(section, field string) int64 {
	s.t.Helper()
	n, err := strconv.ParseInt(s.info(section, field), 10, 64)
	require.NoError(s.t, err, field)
	return n
}

// memoryOnly skips a test unless build/test-memory.sh runs it: it is long, or needs much memory.
func memoryOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("GOTHROTTLE_MEMORY") == "" {
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

// growth says by how much a quantity grew: the median of the last third of its samples, less that of the first third. A
// spike does not count.
func growth(samples []int64) int64 {
	third := len(samples) / 3
	return median(samples[len(samples)-third:]) - median(samples[:third])
}

func median(values []int64) int64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// pipeline sends n calls at once, which must be admitted. call returns the i-th.
func (s *server) pipeline(n int, call func(i int) string) {
	s.t.Helper()
	c := s.client(3)
	defer c.Close()
	p := c.Pipeline()
	for i := range n {
		p.Do(ctx, fields(call(i))...)
	}
	_, err := p.Exec(ctx)
	require.NoError(s.t, err)
}

// A million limiters take what docs/operating.md says, and FLUSHALL gives the memory back. Without make test-memory they are
// fewer: then the tables of keys and expiries take more for each.
func TestMemory_keys(t *testing.T) {
	lasts(t)
	const batch = 10_000
	keys, more := 100_000, int64(5)
	if os.Getenv("GOTHROTTLE_MEMORY") != "" {
		keys, more = 1_000_000, 1
	}
	for rate, most := range map[string]int64{
		"99 1800 3600": 145,
		"99 1 3600":    161, // slow
		"99 7 3600":    161, // the count does not divide the period
	} {
		s := start(t, options{})
		s.pipeline(batch, func(i int) string { return fmt.Sprintf("GO.THROTTLE user:%08d %s", i, rate) })
		s.must("FLUSHALL SYNC")
		before := s.usage()
		for first := 0; first < keys+batch; first += batch { // a second call on a key takes no memory
			s.pipeline(batch, func(i int) string { return fmt.Sprintf("GO.THROTTLE user:%08d %s", (first+i)%keys, rate) })
		}
		require.EqualValues(t, keys, s.DBSize(ctx).Val())
		each := int64(0)
		eventually(t, "the server has resized its tables", func() bool { each = (s.usage().used - before.used) / int64(keys); return each <= most+more })
		t.Logf("%s: %d bytes per key, %d resident", rate, each, (s.usage().resident-before.resident)/int64(keys))
		s.must("FLUSHALL SYNC")
		eventually(t, "the memory is back", func() bool { return s.usage().used <= before.used+1<<20 })
		_ = s.Do(ctx, "MEMORY", "PURGE")
		eventually(t, "the resident memory is back", func() bool { return s.usage().resident <= before.resident+16<<20 })
	}
}

// The memory, threads and files of the process: see the pages operating.md, under Sizing and Address space, and SECURITY.md,
// under Loading. TestMemory_steadyLoad has them under load.
func TestMemory_whatTheModuleTakes(t *testing.T) {
	memoryOnly(t)
	s := start(t, options{Bare: true, Args: []string{"--enable-module-command", "yes", "--slowlog-log-slower-than", "-1"}})
	s.must("PING")
	bare := s.usage()
	s.must("MODULE LOAD " + env.module)
	s.must("GO.THROTTLE k 9 1 60")
	loaded := s.usage()
	for n := range 300 {
		s.setPolicies(manyPolicies(n))
	}
	changed := s.usage()
	t.Logf("without the module %+v, with it %+v, after changes of policies %+v", bare, loaded, changed)
	for what, one := range map[string]usage{"loaded": loaded, "after changes": changed} {
		assert.InDelta(t, 6, one.threads-bare.threads, 3, "threads, %s", what)
		assert.InDelta(t, 1.55e9, one.address-bare.address, 0.25e9, "bytes of address space, %s", what)
		assert.LessOrEqual(t, one.files, bare.files+4, "open files, %s", what)
	}
	assert.LessOrEqual(t, loaded.resident-bare.resident, int64(4<<20), "bytes of resident memory")
	assert.LessOrEqual(t, changed.resident-bare.resident, int64(12<<20), "bytes of resident memory after changes of policies")
}
