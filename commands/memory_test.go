package commands_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// No transcript has a command that no server knows, or none.
func TestMemory_errors(t *testing.T) {
	server := memory.NewServer()
	for line, want := range map[string]string{"": "ERR empty command", "NO k": "ERR unknown command 'NO', with args beginning with: 'k' "} {
		if _, err := server.Do(1e15, strings.Fields(line)...); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if err := server.SetPolicies("nonsense"); err == nil {
		t.Error("nonsense is a policy")
	}
}

// A transcript does not say when a server forgets: it forgets limiters that have drained while calls at other keys go on.
func TestMemory_forgetsWhatHasDrained(t *testing.T) {
	server := memory.NewServer()
	now := funnel.Micros(corpus.Epoch)
	call := func(key int) {
		if _, err := server.Do(now, "GO.THROTTLE", fmt.Sprint(key), "9", "10", "1"); err != nil {
			t.Fatal(err)
		}
	}
	const drained = 20_000
	for key := range drained {
		call(key)
	}
	now += 60_000_000
	for range drained {
		call(-1)
	}
	if keys := len(server.Keys()); keys != 1 {
		t.Errorf("%d keys are left", keys)
	}
}

// A key is there until the clock by which keys expire has passed its expiry, even if the clock of the calls has.
func TestMemory_lag(t *testing.T) {
	for lag, want := range map[funnel.Micros]bool{0: false, 5_000_000: true} {
		server := memory.NewServer()
		server.SetLag(lag)
		now := funnel.Micros(1_800_000_000_000_000)
		_, err := server.Do(now, "GO.QUOTA", "k", "5", "1")
		if reply, _ := server.Do(now+3_000_000, "GO.INFO", "k"); err != nil || (reply != nil) != want {
			t.Errorf("behind by %d µs: %v, %v", lag, reply, err)
		}
	}
}

// A transcript would have 128 names in a line: GO.INFO lists at most 128 holders, those whose slots lapse last, and counts all.
func TestInfo_manyLeases(t *testing.T) {
	s, now := memory.NewServer(), funnel.Micros(corpus.Epoch)
	for i := range 300 {
		s.Do(now, "GO.LEASE", "k", "1000", fmt.Sprint(100+i), fmt.Sprint("id", i))
	}
	for _, row := range []struct {
		wait  funnel.Micros
		held  int64
		names int
	}{{0, 300, 128}, {271, 128, 128}, {1, 127, 127}, {127, 0, 0}} {
		now += row.wait * 1_000_000
		reply, _ := s.Do(now, "GO.INFO", "k")
		pairs := reply.(memory.Map)
		holders := pairs[7].(memory.Map)
		if pairs[5] != row.held || len(holders) != 2*row.names || row.names > 0 && holders[0] != "id299" {
			t.Errorf("%+v: %v", row, pairs)
		}
		if row.names == 128 && slices.Contains(holders, any("id171")) {
			t.Errorf("%+v: it has a holder that lapses before others that it has not: %v", row, pairs)
		}
	}
}

// A transcript has no times after 2262.
func TestInfo_lateExpiry(t *testing.T) {
	const now = funnel.Micros(corpus.Epoch)
	s := memory.NewServer()
	s.Do(now, "GO.QUOTA", "k", "10", "60")
	v := s.Get("k").Clone()
	v.Expire = 1 << 62
	s.Put("k", v)
	want := fmt.Sprintf("[kind quota expires_in_ms %d used 1 ends_in_ms 60000]", math.MaxInt64/1_000_000-int64(now/1000))
	if got, _ := s.Do(now, "GO.INFO", "k"); fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// The host may run a command between the plan and the handler, and another module may then change the policies.
func TestPolicies_changedAfterThePlan(t *testing.T) {
	row := commands.Find("GO.POLICY")
	for _, changed := range []string{"", "b QUOTA 1 1h", "a WINDOW 1 1h"} {
		e := commands.NewEngine(nil)
		c := commands.Call{Args: []string{"a:k"}, Keys: make([]commands.Key, 0, 1), Clauses: make([]commands.Clause, 0, 1)}
		use := func(text string) {
			p, err := commands.ParsePolicies(text)
			if err != nil {
				t.Fatal(err)
			}
			e.UsePolicies(p)
		}
		use("a QUOTA 1 1h")
		if code := e.Plan(row, &c); code != commands.NoError {
			t.Fatal(code.Text())
		}
		use(changed)
		if code := e.Run(row, &c); code != commands.ErrNoPolicy {
			t.Errorf("%q: %v", changed, code)
		}
	}
}

// No transcript has concurrent calls. Those at keys of different shards run in parallel.
func TestMemory_parallel(t *testing.T) {
	row := commands.Find("GO.QUOTA")
	was, both := row.Handler, make(chan struct{})
	alone, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	defer func() { row.Handler = was }()
	row.Handler = func(c *commands.Call) commands.ErrorCode {
		select {
		case both <- struct{}{}:
			cancel() // the others need not meet
		case <-both:
		case <-alone.Done():
			if errors.Is(alone.Err(), context.DeadlineExceeded) {
				t.Error("no other call runs")
			}
		}
		return was(c)
	}
	server := memory.NewServer()
	together(64, func(n int) { _, _ = server.Do(corpus.Epoch, "GO.QUOTA", fmt.Sprint(n), "1", "1h") })
}

// Concurrent calls never exceed the limit, and those of several keys take from all or from none.
func TestMemory_atOnce(t *testing.T) {
	server, single := memory.NewServer(), atomic.Int64{}
	together(8, func(n int) {
		for i := range 500 {
			lines := []string{"GO.QUOTA a 1000 1h", fmt.Sprintf("GO.ALL a QUOTA 1000 1h KEY b%d QUOTA 9999 1h", n),
				fmt.Sprintf("GO.QUOTA b%d 9999 1h 0", 7-n)}
			reply, _ := server.Do(corpus.Epoch, strings.Fields(lines[i%3])...)
			if i%3 == 0 && reply.([]any)[0] == int64(0) {
				single.Add(1)
			}
		}
	})
	admitted := int64(0)
	for n := range 8 {
		reply, err := server.Do(corpus.Epoch, "GO.QUOTA", fmt.Sprintf("b%d", n), "9999", "1h", "0")
		if err != nil {
			t.Fatal(err)
		}
		admitted += 9999 - reply.([]any)[2].(int64)
	}
	if admitted += single.Load(); admitted != 1000 {
		t.Errorf("%d calls took a unit of 1000", admitted)
	}
}

// together runs f so many times concurrently.
func together(times int, f func(n int)) {
	var wg sync.WaitGroup
	for n := range times {
		wg.Go(func() { f(n) })
	}
	wg.Wait()
}
