package commands_test

import (
	"fmt"
	"strings"
	"testing"

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

// The host may run a command between the plan and the handler, and another module may then change the policies.
func TestPolicies_changedAfterThePlan(t *testing.T) {
	for _, changed := range []string{"", "b QUOTA 1 1h", "a WINDOW 1 1h"} {
		other, err := commands.ParsePolicies(changed)
		if err != nil {
			t.Fatal(err)
		}
		s := memory.NewServer()
		if err := s.SetPolicies("a QUOTA 1 1h"); err != nil {
			t.Fatal(err)
		}
		s.Handle(func(e *commands.Engine, row *commands.Command, c *commands.Call) commands.ErrorCode {
			e.UsePolicies(other)
			return e.Run(row, c)
		})
		reply, err := s.Do(1e15, "GO.POLICY", "a:k")
		if err == nil || !strings.HasPrefix(err.Error(), "ERR no policy for the key 'a:k'") {
			t.Errorf("%q: %v, %v", changed, reply, err)
		}
	}
}
