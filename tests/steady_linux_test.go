package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steadyCalls are of all kinds, on limiters that come and go. The last one is wrong.
var steadyCalls = []string{
	"GO.THROTTLE t:%[1]d 9 10 1", "GO.THROTTLE t:%[1]d 9 7 3 2 LOCKOUT 1", "GO.WINDOW w:%[1]d 150 2 3", "GO.QUOTA q:%[1]d 3 1",
	"GO.LEASE l:%[1]d 3 1 holder-%[2]d", "GO.RELEASE l:%[1]d holder-%[2]d", "GO.POLICY api:%[1]d", "GO.INFO t:%[1]d",
	"GO.ALL a:%[1]d THROTTLE 9 10 1 KEY b:%[1]d QUOTA 9 1 KEY c:%[1]d WINDOW 9 1", "GO.THROTTLE t:%[1]d 9 x 1",
}

// steadyLoad begins to make this many calls a second, over four connections. stop ends the load; an unexpected reply fails
// the test. A slow machine makes fewer calls, and never a burst of them.
func (s *server) steadyLoad(rate int) (calls *atomic.Int64, stop func()) {
	const connections, names = 4, 2000
	calls = new(atomic.Int64)
	var failed atomic.Value
	var running sync.WaitGroup
	ended := make(chan struct{})
	s.setPolicies(manyPolicies(0))
	for i := range connections {
		running.Go(func() {
			random, ticks := rand.New(rand.NewPCG(11, uint64(i))), time.Tick(time.Second*connections/time.Duration(rate))
			conn := s.Conn()
			for n := 0; ; n++ {
				select {
				case <-ended:
					conn.Close()
					return
				case <-ticks:
				}
				if n%500 == 499 {
					conn.Close()
					conn = s.Conn()
				}
				kind := random.IntN(len(steadyCalls))
				call := fmt.Sprintf(steadyCalls[kind], random.IntN(names), random.IntN(5))
				if err := failure(conn.Do(ctx, fields(call)...).Err()); (err != nil) != (kind == len(steadyCalls)-1) {
					failed.CompareAndSwap(nil, fmt.Sprintf("%s: %v", call, err))
				}
				calls.Add(1)
			}
		})
	}
	return calls, func() {
		s.t.Helper()
		close(ended)
		running.Wait()
		require.Nil(s.t, failed.Load())
	}
}

// manyPolicies is a different text of 200 policies for each n, so that the module makes new policies: they are
// memory of the Go runtime.
func manyPolicies(n int) string {
	text := fmt.Sprintf("api THROTTLE 9 10 1s; other QUOTA %d 1d", 1+n%1000)
	for i := range 200 {
		text += fmt.Sprintf("; p%d WINDOW 9 1h", i)
	}
	return text
}

// No transcript is a load. Memory, threads and file descriptors of a server stay the same under constant load. MINUTES is
// the time, half a minute if it is not set, and CALLS the calls per second.
func TestMemory_steadyLoad(t *testing.T) {
	memoryOnly(t)
	length := 30 * time.Second
	if os.Getenv("MINUTES") != "" {
		length = time.Duration(setting(t, "MINUTES", 1)) * time.Minute
	}
	every := max(time.Second, min(5*time.Second, length/60))
	s := start(t, options{Args: []string{"--slowlog-log-slower-than", "-1"}})
	s.must("CONFIG SET gothrottle.top-keys 100")
	calls, stop := s.steadyLoad(setting(t, "CALLS", 2000))
	for n := range 200 { // the Go runtime takes what it needs
		s.setPolicies(manyPolicies(n))
	}
	samples := map[string][]int64{}
	for n := 1; n <= int(length/every); n++ {
		time.Sleep(every)
		s.setPolicies(manyPolicies(n))
		s.must("GO.TOP 10")
		u := s.usage()
		for what, value := range map[string]int64{"bytes of used memory": u.used, "bytes of resident memory": u.resident,
			"threads": u.threads, "files": u.files} {
			samples[what] = append(samples[what], value)
		}
	}
	stop()
	require.Greater(t, calls.Load(), int64(length/time.Second)*10, "calls")
	for what, most := range map[string]int64{"bytes of used memory": 128 << 10, "bytes of resident memory": 768 << 10, "threads": 3, "files": 3} {
		values := samples[what][len(samples[what])/4:] // the server and the Go runtime take what they need first
		t.Logf("%s: grew by %d; %d at first, %d at last, after %d calls", what, growth(values), values[0], values[len(values)-1], calls.Load())
		assert.LessOrEqual(t, growth(values), most, what)
	}
}
