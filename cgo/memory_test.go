package cgo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// anyCall returns a random call of a command that replies numbers.
func anyCall(r *rand.Rand) string {
	n := func(most int64) int64 { return r.Int64N(most) }
	key := func(kind string) string { return fmt.Sprint(kind, n(3)) }
	switch n(7) {
	case 0, 1:
		return fmt.Sprintf("GO.THROTTLE %s %d %d %d %d MS %s", key("t"), n(5), 1+n(3), 1+n(300), n(6)-2,
			pick(r, "", "", "UPTO", "FORCE", "RESERVE 500", "LOCKOUT 300"))
	case 2:
		return fmt.Sprintf("GO.WINDOW %s %d 200 %d MS %s %s", key("w"), 1+n(200), n(60)-10, pick(r, "", "UPTO", "FORCE"), pick(r, "", "EXACT"))
	case 3:
		return fmt.Sprintf("GO.QUOTA %s %d %d %d MS %s", key("q"), 1+n(9), 100+n(2), n(6)-2, pick(r, "", "UPTO", "FORCE", "ALIGN 7"))
	case 4:
		return fmt.Sprintf("GO.LEASE %s %d %d id%d MS", key("l"), 1+n(4), 50+n(200), n(6))
	case 5:
		return fmt.Sprintf("GO.RELEASE %s id%d id%d", key("l"), n(6), n(6))
	}
	return fmt.Sprintf("GO.ALL %s THROTTLE %d 1 100 %d THROTTLE 2 1 200 KEY %s QUOTA 5 100 %d KEY %s LEASE 3 100 id%d MS",
		key("t"), n(4), n(3), key("q"), n(3)-1, key("l"), n(6))
}

// The module replicates the same commands, in the same order, as package memory, which the simulation runs on.
func TestEffects_asInMemory(t *testing.T) {
	h, server := loaded(t), corpus.NewMemory()
	host := commands.TheHost // each of the two has its own
	defer func() { commands.TheHost = host }()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	effects := 0
	for i := range rounds(50_000) {
		h.Advance(r.Int64N(400_000) / max(1, r.Int64N(1000)))
		line := anyCall(r)
		server.Clock(h.Now())
		reply, told := server.Call(strings.Fields(line))
		commands.TheHost = host
		want := fmt.Sprint(reply)
		if got := call(h, line).String(); got != want {
			t.Fatalf("seed %d, call %d: %s: the module replies %s, package memory %s", seed, i, line, got, want)
		}
		if got := h.EffectWords(); !slices.EqualFunc(got, told, slices.Equal) {
			t.Fatalf("seed %d, call %d: %s: the module replicates %q, package memory %q", seed, i, line, got, told)
		}
		effects += len(told)
	}
	if effects < rounds(20_000) {
		t.Errorf("only %d effects", effects)
	}
}
