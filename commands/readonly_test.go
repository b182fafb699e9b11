package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// A property over random calls of all commands: a read-only command replies what the call then replies, and changes
// nothing.
func TestReadOnly_repliesAsTheCall(t *testing.T) {
	server := corpus.NewMemory()
	if err := server.SetPolicies("sample QUOTA 5 100ms"); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	now, compared := int64(1_800_000_000_000_000), map[string]int{}
	for i := range 3_000 {
		now += r.Int64N(100_000) / max(1, r.Int64N(1000))
		server.Clock(now)
		words := strings.Fields(randomCall(r))
		name := strings.TrimSuffix(words[0], "_RO")
		if name == "GO.RELEASE" {
			_, _ = server.Call(words)
			continue
		}
		for _, key := range server.Keys() {
			server.Expire(key, funnel.Micros(now))
		}
		before := server.Dump()
		words[0] = name + "_RO"
		would, effects := server.Call(words)
		if after := server.Dump(); after != before || effects != nil {
			t.Fatalf("seed %d, call %d: %q: %q:\n%s\nand\n%s", seed, i, words, effects, before, after)
		}
		words[0] = name
		reply, _ := server.Call(words)
		if got, want := fmt.Sprint(reply), strings.Replace(fmt.Sprint(would), "_ro'", "'", 1); got != want {
			t.Fatalf("seed %d, call %d: %q: %s, its read-only twin %s", seed, i, words, got, want)
		}
		compared[name]++
	}
	for _, name := range []string{"GO.THROTTLE", "GO.WINDOW", "GO.QUOTA", "GO.LEASE", "GO.ALL", "GO.POLICY"} {
		if compared[name] < 100 {
			t.Errorf("%s: %d calls", name, compared[name])
		}
	}
}
