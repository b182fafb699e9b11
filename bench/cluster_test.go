package main

import (
	"slices"
	"testing"

	servers "gothrottle/tests/server"
)

// The slots are those that CLUSTER KEYSLOT tells.
func TestSlotOf(t *testing.T) {
	for key, want := range map[string]int{"123456789": 12739, "foo": 12182, "bar": 5061} {
		if got := slotOf([]byte(key)); got != want {
			t.Errorf("%s: %d, want %d", key, got, want)
		}
	}
}

// All keys are drawn. In turn, each pool has the keys of one server.
func TestFleet_targets(t *testing.T) {
	f := &fleet{servers: make([]*server, 3)}
	for _, inTurn := range []bool{false, true} {
		to := f.targets(1000, inTurn)
		var all []int64
		for _, pool := range to.pools {
			if n := to.ownersOf(pool); inTurn && n != 1 || !inTurn && n != 3 {
				t.Errorf("in turn %v: a pool of %d servers", inTurn, n)
			}
			all = append(all, pool...)
		}
		slices.Sort(all)
		if len(all) != 1000 || len(slices.Compact(all)) != 1000 {
			t.Errorf("in turn %v: %d keys", inTurn, len(all))
		}
	}
	if to := f.targets(1, false); to.owners[0] != uint8(slotOf([]byte(hotKey))*3/servers.Slots) {
		t.Error("the owner is not the server of the key's slot")
	}
}
