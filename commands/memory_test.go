package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/tests/corpus"
)

// Package memory replies to random calls what this package's store replies, which checks every handler's contract.
func TestMemory_repliesAsTheStore(t *testing.T) {
	store, server := commands.NewStore(t), memory.NewServer()
	if err := server.SetPolicies(corpus.SamplePolicies); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	now := funnel.Micros(1_800_000_000_000_000)
	kinds := map[string]int{}
	for i := range 2_000 {
		now += funnel.Micros(r.Int64N(400_000)) / max(1, funnel.Micros(r.Int64N(1000)))
		line := randomCall(r)
		want := store.Told(now, line)
		reply, err := server.Do(now, strings.Fields(line)...)
		got := fmt.Sprint(reply)
		if err != nil {
			got = err.Error()
		}
		if got != want && !strings.HasPrefix(got, "ERR wrong number of arguments") {
			t.Fatalf("seed %d, call %d: %s: %s, want %s", seed, i, line, got, want)
		}
		kinds[strings.Fields(line)[0]]++
	}
	if server.Len(now) > 20 || server.Len(now+1e12) != 0 {
		t.Errorf("%d keys, later %d", server.Len(now), server.Len(now+1e12))
	}
	if len(kinds) < 10 {
		t.Errorf("%v", kinds)
	}
}

// randomCall returns a call whose limits and periods are small, so that states of all kinds come up.
func randomCall(r *rand.Rand) string {
	n := func(most int64) int64 { return r.Int64N(most) }
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	key := func(kind string) string { return fmt.Sprintf("%s%d", kind, n(3)) }
	if n(50) == 0 {
		kind := key(pick("t", "w", "q", "l"))
		return pick("GO.THROTTLE "+kind+" 3 1 1", "GO.WINDOW "+kind+" 3 1", "GO.QUOTA "+kind+" 3 1", "GO.LEASE "+kind+" 3 1 x", "GO.THROTTLE "+kind)
	}
	ro := pick("", "", "", "_RO")
	switch n(7) {
	case 0, 1:
		return fmt.Sprintf("GO.THROTTLE%s %s %d %d %d %d MS %s", ro, key("t"), n(5), 1+n(3), 1+n(300), n(6)-2,
			pick("", "", "UPTO", "FORCE", "RESERVE 500", "LOCKOUT 300"))
	case 2:
		return fmt.Sprintf("GO.WINDOW%s %s %d %d %d MS %s %s", ro, key("w"), 1+n(200), 200, n(60)-10, pick("", "UPTO", "FORCE"), pick("", "EXACT"))
	case 3:
		return fmt.Sprintf("GO.QUOTA%s %s %d %d %d MS %s %s", ro, key("q"), 1+n(9), 100+n(2), n(6)-2, pick("", "UPTO", "FORCE"), pick("", "ALIGN 7"))
	case 4:
		return fmt.Sprintf("GO.LEASE%s %s %d %d id%d MS", ro, key("l"), 1+n(4), 50+n(200), n(6))
	case 5:
		return fmt.Sprintf("GO.RELEASE %s id%d id%d", key("l"), n(6), n(6))
	}
	return pick(
		fmt.Sprintf("GO.POLICY%s sample:%d %d MS", ro, n(3), n(3)),
		fmt.Sprintf("GO.ALL%s %s THROTTLE %d 1 100 %d THROTTLE 2 1 200 KEY %s QUOTA 5 100 %d KEY %s LEASE 3 100 id%d MS",
			ro, key("t"), n(4), n(3), key("q"), n(3)-1, key("l"), n(6)),
		fmt.Sprintf("GO.ALL %s THROTTLE 3 1 100 %d KEY %s WINDOW 20 100 %d MS FORCE", key("t"), n(7)-3, key("w"), n(40)-20),
	)
}

// A command that memory does not know is an error as the server's.
func TestMemory_errors(t *testing.T) {
	server := memory.NewServer()
	for line, want := range map[string]string{
		"GET k": "ERR unknown command 'GET'", "GO.INFO": "ERR wrong number of arguments for 'go.info' command",
		"GO.QUOTA k": "ERR wrong number of arguments for 'go.quota' command", "GO.QUOTA k 0 1": "ERR limit must be between 1 and 1000000000000",
		"GO.QUOTA k 1 1 1 NO": "ERR unknown option 'NO'",
	} {
		if _, err := server.Do(1e15, strings.Fields(line)...); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if err := server.SetPolicies("nonsense"); err == nil {
		t.Error("nonsense is a policy")
	}
}

// A server that applies the effects of another one holds the same, with the same expiries, after every call.
func TestMemory_effectsMakeAReplica(t *testing.T) {
	master, replica := corpus.NewMemory(), corpus.NewMemory()
	if err := master.SetPolicies(corpus.SamplePolicies); err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	now := int64(1_800_000_000_000_000)
	for i := range 2_000 {
		now += r.Int64N(400_000) / max(1, r.Int64N(1000))
		line := randomCall(r)
		master.Clock(now)
		replica.Clock(now)
		_, told := master.Call(strings.Fields(line))
		for _, words := range told {
			effects[words[0]]++
			if _, known := corpus.Plain(replica.Server, words); !known {
				t.Fatalf("seed %d, call %d: %s: %q", seed, i, line, words)
			}
		}
		if a, b := master.Dump(), replica.Dump(); a != b {
			t.Fatalf("seed %d, call %d: %s: %q:\n%s\nand\n%s", seed, i, line, told, a, b)
		}
	}
	for _, name := range strings.Fields("HSET HDEL ZADD ZREM SET DEL PEXPIREAT") {
		if effects[name] == 0 {
			t.Errorf("no call had the effect %s: %v", name, effects)
		}
	}
}

// A server forgets limiters that have drained while calls at other keys go on.
func TestMemory_forgetsWhatHasDrained(t *testing.T) {
	server := memory.NewServer()
	now := funnel.Micros(1_800_000_000_000_000)
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
	for range drained/4 + 1 {
		call(-1)
	}
	if keys := len(server.Keys()); keys != 1 {
		t.Errorf("%d keys are left", keys)
	}
}
