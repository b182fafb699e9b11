package tests

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipeline sends n calls at once, and returns the number of replies that are errors. call returns the i-th.
func (w *wire) pipeline(n int, call func(i int) string) (errors int) {
	w.t.Helper()
	var calls strings.Builder
	for i := range n {
		calls.WriteString(call(i))
		calls.WriteString("\r\n")
	}
	w.sendRaw([]byte(calls.String()))
	for range n {
		if _, wrong := w.next().(wireError); wrong {
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

// dial opens n connections, some at a time.
func (s *server) dial(n int) []*wire {
	s.t.Helper()
	all, jobs := make([]*wire, n), make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range jobs {
				if conn, err := net.DialTimeout("tcp", s.addr, patience); err == nil {
					all[i] = newWire(s.t, conn, 1<<10)
				}
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	for i, w := range all {
		require.NotNil(s.t, w, "connection %d", i)
	}
	return all
}

// 10,000 clients are connected, and all of them ask at once.
func TestMemory_connections(t *testing.T) {
	memoryOnly(t)
	const clients, rounds = 10_000, 3
	openFiles(t, clients+1000)
	s := start(t, options{args: []string{"--maxclients", fmt.Sprint(clients + 100)}})
	s.throttle("warm", 9, 1, 60)
	before, used := s.usage(), s.usedMemory()
	all := s.dial(clients)
	for round := range rounds {
		for i, w := range all {
			w.send("GO.THROTTLE", fmt.Sprint("client:", i), 9, 1, 3600)
		}
		for i, w := range all {
			reply, ok := w.next().([]any)
			require.True(t, ok, "client %d", i)
			require.Equal(t, []any{int64(0), int64(10), int64(9 - round)}, reply[:3], "client %d", i)
		}
	}
	during := s.usage()
	assert.GreaterOrEqual(t, during.files, before.files+clients)
	assert.LessOrEqual(t, during.threads, before.threads+2, "connections take no thread")
	require.EqualValues(t, clients+1, s.DBSize(ctx).Val())
	t.Logf("%d bytes of resident memory per connection, its limiter included", (during.resident-before.resident)/clients)
	for _, w := range all {
		w.conn.Close()
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
	w := s.wire()
	call := func(first int) func(int) string {
		return func(i int) string { return fmt.Sprintf("GO.THROTTLE user:%08d 99 1800 360000", first+i) }
	}
	require.Zero(t, w.pipeline(batch, call(0)))
	s.must("FLUSHALL SYNC")
	before, used := s.usage(), s.usedMemory()
	for round, calls := range []int{keys, keys / 10} { // a second call on a key takes no memory
		for first := 0; first < calls; first += batch {
			require.Zero(t, w.pipeline(batch, call(first)))
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
	w := s.wire()
	round := func() {
		for _, row := range samples {
			call := strings.TrimSpace(fmt.Sprintln(row.on("pipeline:" + row.Name)...))
			errors := w.pipeline(calls, func(int) string { return call })
			require.Zero(t, errors, call)
		}
		require.Equal(t, calls, w.pipeline(calls, func(int) string { return "GO.ALL pipeline THROTTLE 9 x 60 KEY other WINDOW 1 1" }))
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
	w := s.wire()
	for range 5 {
		require.Zero(t, w.pipeline(10_000, func(i int) string { return fmt.Sprint("GO.THROTTLE k:", i%1000, " 9 1 60") }))
	}
	w.conn.Close()
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
