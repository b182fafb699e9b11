package monitoring

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const policies = "p QUOTA 1 1000s; s SHADOW QUOTA 1 1000s"

// calls has for each command a call of each outcome, whatever was called before. %d makes a new key. What is limited asks
// for 2 units of 1, or for the slot that "holder" has.
var calls = map[string]map[string]string{
	"throttle":    {"admitted": "GO.THROTTLE a%d 0 1 1000", "limited": "GO.THROTTLE d:throttle 0 1 1000 2", "errors": "GO.THROTTLE e 0 1 0", "other": "GO.THROTTLE o 0 1 1000 0"},
	"cl_throttle": {"admitted": "CL.THROTTLE b%d 0 1 1000", "limited": "CL.THROTTLE d:cl 0 1 1000 2", "errors": "CL.THROTTLE e 0 1 0"},
	"window":      {"admitted": "GO.WINDOW w%d 1 1000", "limited": "GO.WINDOW d:window 1 1000 2", "errors": "GO.WINDOW e 1 0"},
	"quota":       {"admitted": "GO.QUOTA q%d 1 1000", "limited": "GO.QUOTA d:quota 1 1000 2", "errors": "GO.QUOTA e 1 0"},
	"lease":       {"admitted": "GO.LEASE l%d 1 1000 me", "limited": "GO.LEASE slots 1 1000 me", "errors": "GO.LEASE e 1 0 me"},
	"release":     {"other": "GO.RELEASE o me", "errors": "GO.RELEASE text me"},
	"all":         {"admitted": "GO.ALL m%d QUOTA 1 1000", "limited": "GO.ALL d:all QUOTA 1 1000 2", "errors": "GO.ALL e QUOTA 1 0"},
	"policy":      {"admitted": "GO.POLICY p:%d", "limited": "GO.POLICY p:d 2", "errors": "GO.POLICY none:x", "shadowed": "GO.POLICY s:d 2"},
	"throttle_ro": {"admitted": "GO.THROTTLE_RO o 0 1 1000", "limited": "GO.THROTTLE_RO o 0 1 1000 2", "errors": "GO.THROTTLE_RO o 0 1 0"},
	"window_ro":   {"admitted": "GO.WINDOW_RO o 1 1000", "limited": "GO.WINDOW_RO o 1 1000 2", "errors": "GO.WINDOW_RO o 1 0"},
	"quota_ro":    {"admitted": "GO.QUOTA_RO o 1 1000", "limited": "GO.QUOTA_RO o 1 1000 2", "errors": "GO.QUOTA_RO o 1 0"},
	"lease_ro":    {"admitted": "GO.LEASE_RO o 1 1000 me", "limited": "GO.LEASE_RO slots 1 1000 me", "errors": "GO.LEASE_RO o 1 0 me"},
	"all_ro":      {"admitted": "GO.ALL_RO o QUOTA 1 1000", "limited": "GO.ALL_RO o QUOTA 1 1000 2", "errors": "GO.ALL_RO o QUOTA 1 0"},
	"policy_ro":   {"admitted": "GO.POLICY_RO p:o", "limited": "GO.POLICY_RO p:o 2", "errors": "GO.POLICY_RO none:x", "shadowed": "GO.POLICY_RO s:o 2"},
	"info":        {"other": "GO.INFO o", "errors": "GO.INFO text"},
}

// order has the commands in the order of the command reference.
var order = strings.Fields("throttle cl_throttle window quota lease release all policy throttle_ro window_ro quota_ro lease_ro all_ro policy_ro info")

// denied are the keys that GO.TOP names, and the commands whose denials it counts there.
var denied = map[string]string{"0:d:throttle": "throttle", "0:d:cl": "cl_throttle", "0:d:window": "window", "0:d:quota": "quota",
	"0:slots": "lease", "0:d:all": "all", "0:p:d": "policy"}

// wireName is the name by which the server knows a command.
func wireName(command string) string {
	if command == "cl_throttle" {
		return "cl.throttle"
	}
	return "go." + command
}

// waves has the share of the traffic that each round sends.
var waves = []int{1, 2, 4, 6, 4, 2, 1, 0, 0, 3, 3, 3, 6, 3, 1, 1}

// counts says how many calls are sent: by command, and then by outcome. "refused" are calls that the server refuses. The
// commands differ in every outcome, so that no panel can show one for the other.
func counts() map[string]map[string]int {
	n := map[string]map[string]int{}
	for i, command := range order {
		n[command] = map[string]int{}
		if command != "cl_throttle" { // the module itself refuses it: an error
			n[command]["refused"] = 1 + i
		}
		for outcome := range calls[command] {
			n[command][outcome] = i + map[string]int{"admitted": 16, "limited": 3, "errors": 2, "other": 5, "shadowed": 7}[outcome]
		}
	}
	return n
}

// prepare makes the server know all commands from the start, and an error of full memory: a counter that appears with its
// first event has no increase.
func prepare(t *testing.T, client *redis.Client) {
	t.Helper()
	for command, n := range counts() {
		if n["refused"] == 0 {
			continue
		}
		if err := client.Do(ctx, wireName(command)).Err(); err == nil || !strings.Contains(err.Error(), "wrong number of arguments") {
			t.Fatalf("%s without words: %v", command, err)
		}
	}
	fillMemory(t, client, "CL.THROTTLE k 0 1 1")
}

// fillMemory makes the server evict 30 keys and refuse calls, and then gives it memory again.
func fillMemory(t *testing.T, client *redis.Client, calls ...string) {
	t.Helper()
	for i := range 30 {
		client.Set(ctx, fmt.Sprint("evicted", i), "", 0)
	}
	client.ConfigSet(ctx, "maxmemory-policy", "allkeys-random")
	client.ConfigSet(ctx, "maxmemory", "1")
	until(t, func() error {
		if err := client.Set(ctx, "refused", "", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
			return fmt.Errorf("with full memory: %v", err)
		}
		return nil
	})
	for _, call := range calls {
		if err := client.Do(ctx, words(call)...).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
			t.Fatalf("%s with full memory: %v", call, err)
		}
	}
	client.ConfigSet(ctx, "maxmemory", "0")
}

// send sends one round of the traffic.
func send(client *redis.Client, round int) {
	pipe := client.Pipeline()
	pipe.Set(ctx, "text", "no limiter", 0)
	for command, outcomes := range counts() {
		for outcome, n := range outcomes {
			call := calls[command][outcome]
			if outcome == "refused" {
				call = wireName(command)
			}
			for i := n * sum(waves[:round]) / sum(waves); i < n*sum(waves[:round+1])/sum(waves); i++ {
				pipe.Do(ctx, words(strings.Replace(call, "%d", fmt.Sprint(i), 1))...)
			}
		}
	}
	pipe.Exec(ctx) // returns the first error reply; many are wanted
}

func sum(list []int) (n int) {
	for _, one := range list {
		n += one
	}
	return n
}
