package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrowth(t *testing.T) {
	line := func(slope int64) (samples []int64) {
		for i := range int64(40) {
			samples = append(samples, 1000+slope*i)
		}
		return samples
	}
	assert.EqualValues(t, 0, growth(nil))
	assert.EqualValues(t, 0, growth(line(0)))
	assert.EqualValues(t, 39*5, growth(line(5)))
	spikes := line(5)
	for i := 0; i < len(spikes); i += 5 {
		spikes[i] += 1_000_000
	}
	assert.InDelta(t, 39*5, growth(spikes), 10, "spikes do not count")
	step := line(0)
	for i := range step[20:] {
		step[20+i] += 500
	}
	assert.Positive(t, growth(step), "a step counts")
}

// steadySample is one look at a server under load.
type steadySample struct {
	used, resident int64 // bytes
	threads, files int64
	p99            int64 // of the calls since the last sample, in µs, as the client sees them
}

// steadyLoad makes calls at a bounded rate, on limiters that come and go. The calls are of all kinds, and
// settings change as well: that takes memory of the Go runtime.
type steadyLoad struct {
	s       *server
	calls   atomic.Int64
	failed  atomic.Value // the first error, a string
	ended   chan struct{}
	workers sync.WaitGroup

	mu    sync.Mutex
	times []int64 // of the calls since the last sample, in µs
}

const steadyNames = 2000 // limiters of each kind

// newSteadyLoad begins to make this many calls a second, over four connections.
func newSteadyLoad(s *server, rate int) *steadyLoad {
	const workers = 4
	l := &steadyLoad{s: s, ended: make(chan struct{})}
	s.setPolicies(manyPolicies(0))
	for worker := range workers {
		l.workers.Go(func() { l.run(worker, time.Second*workers/time.Duration(rate)) })
	}
	return l
}

// stop ends the load. A call with an unexpected reply fails the test.
func (l *steadyLoad) stop(t *testing.T) {
	t.Helper()
	close(l.ended)
	l.workers.Wait()
	require.Nil(t, l.failed.Load())
}

// words returns a call, and whether it is a wrong one.
func (l *steadyLoad) words(random *rand.Rand) (call string, wrong bool) {
	n, id := random.IntN(steadyNames), random.IntN(5)
	switch random.IntN(10) {
	case 0:
		return fmt.Sprintf("GO.THROTTLE t:%d 9 10 1", n), false
	case 1:
		return fmt.Sprintf("GO.THROTTLE t:%d 9 7 3 2 LOCKOUT 1", n), false
	case 2:
		return fmt.Sprintf("GO.WINDOW w:%d 150 2 3", n%100), false
	case 3:
		return fmt.Sprintf("GO.QUOTA q:%d 3 1", n), false
	case 4:
		return fmt.Sprintf("GO.LEASE l:%d 3 1 holder-%d", n, id), false
	case 5:
		return fmt.Sprintf("GO.RELEASE l:%d holder-%d", n, id), false
	case 6:
		return fmt.Sprintf("GO.ALL a:%d THROTTLE 9 10 1 KEY b:%d QUOTA 9 1 KEY c:%d WINDOW 9 1", n, n, n), false
	case 7:
		return fmt.Sprintf("GO.POLICY api:%d", n), false
	case 8:
		return fmt.Sprintf("GO.INFO t:%d", n), false
	}
	return fmt.Sprintf("GO.THROTTLE t:%d 9 x 1", n), true
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

// run makes calls, one each interval, until the load ends. Each 500 calls it takes a new connection.
func (l *steadyLoad) run(worker int, interval time.Duration) {
	random := rand.New(rand.NewPCG(11, uint64(worker)))
	var conn *redis.Conn
	defer func() { conn.Close() }()
	next := time.Now()
	for i := 0; ; i++ {
		if i%500 == 0 {
			if conn != nil {
				conn.Close()
			}
			conn = l.s.Conn()
		}
		next = next.Add(interval)
		if wait := time.Until(next); wait < -time.Second {
			next = time.Now() // a slow machine makes fewer calls, and never a burst of them
		} else {
			select {
			case <-l.ended:
				return
			case <-time.After(wait):
			}
		}
		l.call(conn, random)
	}
}

func (l *steadyLoad) call(conn *redis.Conn, random *rand.Rand) {
	text, wrong := l.words(random)
	begin := time.Now()
	err := failure(conn.Do(ctx, fields(text)...).Err())
	took := time.Since(begin).Microseconds()
	if wrong != (err != nil) {
		l.failed.CompareAndSwap(nil, fmt.Sprintf("%s: %v", text, err))
	}
	l.calls.Add(1)
	l.mu.Lock()
	l.times = append(l.times, took)
	l.mu.Unlock()
}

// sample reads what the server takes now.
func (l *steadyLoad) sample() steadySample {
	l.mu.Lock()
	times := l.times
	l.times = nil
	l.mu.Unlock()
	u := l.s.usage()
	one := steadySample{used: l.s.usedMemory(), resident: u.resident, threads: int64(u.threads), files: int64(u.files)}
	if len(times) > 0 {
		median(times)
		one.p99 = times[len(times)*99/100]
	}
	return one
}

// Memory, threads and file descriptors of a server stay the same under constant load, and so does the p99 if
// the run is long. MINUTES is the time, half a minute if it is not set, and CALLS the calls per second.
func TestMemory_steadyLoad(t *testing.T) {
	memoryOnly(t)
	minutes, rate := 0, setting(t, "CALLS", 2000)
	length := 30 * time.Second
	if os.Getenv("MINUTES") != "" {
		minutes = setting(t, "MINUTES", 1)
		length = time.Duration(minutes) * time.Minute
	}
	every := max(time.Second, min(5*time.Second, length/60))
	s := start(t, options{args: []string{"--slowlog-log-slower-than", "-1"}})
	s.must("CONFIG SET gothrottle.top-keys 100")
	l := newSteadyLoad(s, rate)
	for n := range 200 { // the Go runtime takes what it needs
		s.setPolicies(manyPolicies(n))
	}
	var samples []steadySample
	for n := 1; n <= int(length/every); n++ {
		time.Sleep(every)
		s.setPolicies(manyPolicies(n))
		s.must("GO.TOP 10")
		one := l.sample()
		samples = append(samples, one)
		if n%12 == 0 {
			t.Logf("%4.0f s: %d calls, used %d, resident %d, threads %d, files %d, p99 %d µs", (time.Duration(n) * every).Seconds(),
				l.calls.Load(), one.used, one.resident, one.threads, one.files, one.p99)
		}
	}
	l.stop(t)
	require.Greater(t, l.calls.Load(), int64(length/time.Second)*10, "calls")
	judgeSteady(t, samples, minutes)
}

// judgeSteady drops the first quarter of the samples, in which the server and the Go runtime take what they need.
func judgeSteady(t *testing.T, samples []steadySample, minutes int) {
	t.Helper()
	samples = samples[len(samples)/4:]
	require.GreaterOrEqual(t, len(samples), 10)
	column := func(of func(steadySample) int64) (values []int64) {
		for _, one := range samples {
			values = append(values, of(one))
		}
		return values
	}
	p99 := column(func(one steadySample) int64 { return one.p99 })
	third := len(p99) / 3
	first, last := median(p99[:third:third]), median(p99[len(p99)-third:])
	t.Logf("%d samples: p99 at first %d µs, at last %d µs", len(samples), first, last)
	for _, c := range []struct {
		what string
		of   func(steadySample) int64
		most int64 // growth
	}{
		{"bytes of used memory", func(one steadySample) int64 { return one.used }, 128 << 10},
		{"bytes of resident memory", func(one steadySample) int64 { return one.resident }, 768 << 10},
		{"threads", func(one steadySample) int64 { return one.threads }, 1},
		{"files", func(one steadySample) int64 { return one.files }, 3},
	} {
		values := column(c.of)
		grew := growth(values)
		assert.LessOrEqual(t, grew, c.most, c.what)
		t.Logf("%s: grew by %d; %d at first, %d at last", c.what, grew, values[0], values[len(values)-1])
	}
	if minutes >= 20 { // in a short run another program of the machine can be the cause
		assert.LessOrEqual(t, last, 3*first+1000, "p99 in µs")
	}
}
