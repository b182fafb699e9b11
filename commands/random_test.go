package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gothrottle/tests/corpus"
)

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
			pick("", "", "UPTO", "FORCE", "RESERVE 500", "LOCKOUT 300", "LOCKOUT 1s"))
	case 2:
		return fmt.Sprintf("GO.WINDOW%s %s %d %d %d MS %s %s", ro, key("w"), 1+n(200), 200, n(60)-10, pick("", "UPTO", "FORCE"), pick("", "EXACT"))
	case 3:
		return fmt.Sprintf("GO.QUOTA%s %s %d %d %d MS %s %s", ro, key("q"), 1+n(9), 100+n(2), n(6)-2, pick("", "UPTO", "FORCE"), pick("", "ALIGN 7", "ALIGN +00:00"))
	case 4:
		return fmt.Sprintf("GO.LEASE%s %s %d %d id%d MS", ro, key("l"), 1+n(4), 50+n(200), n(6))
	case 5:
		return fmt.Sprintf("GO.RELEASE %s id%d id%d", key("l"), n(6), n(6))
	}
	return pick(
		fmt.Sprintf("GO.POLICY%s sample:%d %d MS", ro, n(3), n(3)),
		fmt.Sprintf("GO.ALL%s %s THROTTLE %d 1 100 %d THROTTLE 2 1 200 KEY %s QUOTA 5 100 %d KEY %s LEASE 3 100 id%d MS",
			ro, key("t"), n(4), n(3), key("q"), n(3)-1, key("l"), n(6)),
		fmt.Sprintf("GO.ALL %s THROTTLE 2 1 1s %d LOCKOUT 2s KEY %s QUOTA 9 1mo %d ALIGN 3h MS", key("t"), n(5)-1, key("q"), n(5)-2),
		fmt.Sprintf("GO.ALL %s THROTTLE 3 1 100 %d KEY %s WINDOW 20 100 %d MS FORCE", key("t"), n(7)-3, key("w"), n(40)-20),
	)
}

// Properties of random calls of all commands: a read-only twin replies as the call, every handler keeps its contract, and a
// server that applies the effects holds the same, with the same expiries, after every call.
func TestRandomCalls(t *testing.T) {
	master, replica := newTwins(t), corpus.NewMemory()
	if err := master.SetPolicies(corpus.SamplePolicies); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	now, effects, calls := int64(corpus.Epoch), map[string]int{}, map[string]int{}
	for i := range 2_000 {
		now += r.Int64N(400_000) / max(1, r.Int64N(1000))
		words := strings.Fields(randomCall(r))
		master.Clock(now)
		replica.Clock(now)
		_, replicated := master.Call(words)
		for _, effect := range replicated {
			effects[effect[0]]++
			if _, known := corpus.Plain(replica.Server, effect); !known {
				t.Fatalf("seed %d, call %d: %q: %q", seed, i, words, effect)
			}
		}
		if a, b := master.Dump(), replica.Dump(); a != b || t.Failed() {
			t.Fatalf("seed %d, call %d: %q: %q:\n%s\nand\n%s", seed, i, words, replicated, a, b)
		}
		calls[words[0]]++
	}
	for _, name := range strings.Fields("HSET HDEL ZADD ZREM SET DEL PEXPIREAT") {
		if effects[name] == 0 {
			t.Errorf("no call had the effect %s: %v", name, effects)
		}
	}
	if len(calls) < 10 {
		t.Errorf("%v", calls)
	}
}
