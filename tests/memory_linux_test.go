package tests

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipeline sends n calls at once, and returns the number of replies that are errors. call returns the i-th.
func (s *server) pipeline(n int, call func(i int) string) (errors int) {
	c := s.client(options3)
	defer c.Close()
	p := c.Pipeline()
	for i := range n {
		p.Do(ctx, fields(call(i))...)
	}
	cmds, _ := p.Exec(ctx)
	for _, cmd := range cmds {
		if failure(cmd.Err()) != nil {
			errors++
		}
	}
	return errors
}

// openFiles lets this process and its servers open n files each.
func openFiles(t *testing.T, n uint64) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	limit := syscall.Rlimit{Cur: max(n, before.Cur), Max: max(n, before.Max)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("%d open files are needed, and the limit of %d cannot be raised: %v", n, before.Max, err)
		}
		t.Fatalf("%d open files are needed, and the limit of %d cannot be raised: %v", n, before.Max, err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}

// 10,000 clients are connected, and all of them ask at once.
func TestMemory_connections(t *testing.T) {
	memoryOnly(t)
	const clients, rounds = 10_000, 3
	openFiles(t, clients+1000)
	s := start(t, options{args: []string{"--maxclients", fmt.Sprint(clients + 100)}})
	s.throttle("warm", 9, 1, 60)
	before, used := s.usage(), s.usedMemory()
	conns, replies := make([]net.Conn, clients), make([]*bufio.Reader, clients)
	for i := range conns {
		conn, err := net.DialTimeout("tcp", s.addr, patience)
		require.NoError(t, err)
		defer conn.Close()
		conns[i], replies[i] = conn, bufio.NewReaderSize(conn, 64)
	}
	for round := range rounds {
		for i, conn := range conns {
			_, err := fmt.Fprintf(conn, "GO.THROTTLE client:%d 9 1 3600\r\n", i)
			require.NoError(t, err)
		}
		for i, in := range replies {
			reply := ""
			for range 6 {
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				reply += strings.TrimSpace(line)
			}
			require.Regexp(t, fmt.Sprintf(`^\*5:0:10:%d:-1:`, 9-round), reply, "client %d", i)
		}
	}
	during := s.usage()
	assert.GreaterOrEqual(t, during.files, before.files+clients)
	assert.LessOrEqual(t, during.threads, before.threads+2, "connections take no thread")
	require.EqualValues(t, clients+1, s.DBSize(ctx).Val())
	t.Logf("%d bytes of resident memory per connection, its limiter included", (during.resident-before.resident)/clients)
	for _, conn := range conns {
		conn.Close()
	}
	s.must("FLUSHALL SYNC")
	eventually(t, "the files are closed, and the memory is back", func() bool {
		return s.usage().files <= before.files+2 && s.usedMemory() <= used+1<<20
	})
	s.throttle("warm", 9, 1, 60)
}

// A million limiters take what docs/operating.md says, and FLUSHALL gives the memory back.
func TestMemory_millionKeys(t *testing.T) {
	memoryOnly(t)
	const keys, batch = 1_000_000, 10_000
	s := start(t, options{})
	call := func(first int) func(int) string {
		return func(i int) string { return fmt.Sprintf("GO.THROTTLE user:%08d 99 1800 360000", first+i) }
	}
	require.Zero(t, s.pipeline(batch, call(0)))
	s.must("FLUSHALL SYNC")
	before, used := s.usage(), s.usedMemory()
	for round, calls := range []int{keys, keys / 10} { // a second call on a key takes no memory
		for first := 0; first < calls; first += batch {
			require.Zero(t, s.pipeline(batch, call(first)))
		}
		require.EqualValues(t, keys, s.DBSize(ctx).Val())
		each := int64(0)
		eventually(t, "the server has resized its tables", func() bool { each = (s.usedMemory() - used) / keys; return each <= 146 })
		t.Logf("%d keys, round %d: %d bytes per key, %d resident", keys, round, each, (s.usage().resident-before.resident)/keys)
	}
	s.must("FLUSHALL SYNC")
	eventually(t, "the memory is back", func() bool { return s.usedMemory() <= used+1<<20 })
	_ = s.Do(ctx, "MEMORY", "PURGE")
	eventually(t, "the resident memory is back", func() bool { return s.usage().resident <= before.resident+16<<20 })
	t.Logf("after FLUSHALL: used %+d bytes, resident %+d bytes", s.usedMemory()-used, s.usage().resident-before.resident)
}

// Pipelines of 10,000 calls of each command, right ones and wrong ones, leave nothing behind.
func TestMemory_pipelines(t *testing.T) {
	memoryOnly(t)
	const calls = 10_000
	s := start(t, options{args: []string{"--slowlog-log-slower-than", "-1"}})
	s.must("CONFIG SET gothrottle.top-keys 100")
	round := func() {
		for _, row := range samples {
			call := strings.TrimSpace(fmt.Sprintln(row.on("pipeline:" + row.Name)...))
			errors := s.pipeline(calls, func(int) string { return call })
			require.Zero(t, errors, call)
		}
		require.Equal(t, calls, s.pipeline(calls, func(int) string { return "GO.ALL pipeline THROTTLE 9 x 60 KEY other WINDOW 1 1" }))
		s.must("FLUSHALL SYNC")
	}
	var samples []usage
	var used []int64
	for range setting(t, "PIPELINES", 8) {
		round()
		samples, used = append(samples, s.usage()), append(used, s.usedMemory())
	}
	samples, used = samples[2:], used[2:]
	var resident []int64
	for _, one := range samples {
		resident = append(resident, one.resident)
		assert.LessOrEqual(t, one.threads, samples[0].threads+1)
	}
	t.Logf("used memory %v, resident %v", used, resident)
	assert.LessOrEqual(t, growth(used), int64(64<<10), "bytes of used memory: %v", used)
	assert.LessOrEqual(t, growth(resident), int64(1<<20), "bytes of resident memory: %v", resident)
}

// What the module takes of the process, before and after load: see the pages operating.md, under Sizing and Address
// space, and SECURITY.md, under Loading.
func TestMemory_whatTheModuleTakes(t *testing.T) {
	memoryOnly(t)
	s := start(t, options{bare: true, args: []string{"--enable-module-command", "yes", "--slowlog-log-slower-than", "-1"}})
	s.must("PING")
	bare := s.usage()
	require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	s.throttle("k", 9, 1, 60)
	loaded := s.usage()
	for range 5 {
		require.Zero(t, s.pipeline(10_000, func(i int) string { return fmt.Sprint("GO.THROTTLE k:", i%1000, " 9 1 60") }))
	}
	s.must("FLUSHALL SYNC")
	eventually(t, "the files are as before", func() bool { return s.usage().files <= loaded.files })
	after := s.usage()
	for n := range 300 {
		s.setPolicies(manyPolicies(n))
	}
	changed := s.usage()
	t.Logf("without the module %+v, with it %+v, after load %+v, after changes of policies %+v", bare, loaded, after, changed)
	for what, one := range map[string]usage{"loaded": loaded, "after load": after, "after changes": changed} {
		assert.InDelta(t, 6, one.threads-bare.threads, 3, "threads, %s", what)
		assert.InDelta(t, 1.55e9, one.address-bare.address, 0.25e9, "bytes of address space, %s", what)
		assert.LessOrEqual(t, one.files, bare.files+4, "open files, %s", what)
	}
	assert.LessOrEqual(t, loaded.resident-bare.resident, int64(4<<20), "bytes of resident memory")
	assert.LessOrEqual(t, changed.resident-bare.resident, int64(12<<20), "bytes of resident memory after changes of policies")
}
