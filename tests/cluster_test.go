package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	servers "gothrottle/tests/server"
)

// No transcript has a cluster. Slots that move, and calls meanwhile, are in tests/chaos. Nodes 0 to 2 are masters, node 3+i is
// the replica of node i. Node 0 has the slot of bar, node 2 that of foo.
func TestCluster(t *testing.T) {
	lasts(t)
	for _, args := range [][]string{nil, ioThreads} {
		var nodes []*server
		for _, n := range servers.NewCluster(t, 3, 1, launch(options{Args: args})) {
			nodes = append(nodes, connect(t, n))
		}
		t.Run("every command finds its node", func(t *testing.T) { testRouting(t, nodes) })
		t.Run("a call with keys of several slots is refused", func(t *testing.T) { testCrossSlot(t, nodes) })
	}
}

func testRouting(t *testing.T, nodes []*server) {
	for name, sample := range samples {
		words := sample.on("{bar}" + name)
		assert.Equal(t, sample.Sample.First, flat(nodes[0].Do(ctx, words...).Result()), name)
		assert.Equal(t, sample.Sample.Second, flat(nodes[0].Do(ctx, words...).Result()), name)
		// A node that does not serve the slot names the node that does.
		assert.ErrorContains(t, nodes[1].Do(ctx, words...).Err(), "MOVED ", name)
	}
	// After READONLY a replica answers read-only commands, also with several keys of one slot. It redirects the others.
	w := nodes[3].session()
	several := fields("GO.ALL_RO {bar}x THROTTLE 9 1 60 KEY {bar}y QUOTA 9 60")
	assert.Regexp(t, "^MOVED ", w.do(several...))
	assert.Equal(t, "OK", w.do("READONLY"))
	assert.Equal(t, "[0 9 8 -1 60 1 [0 10 9 -1 60] [0 9 8 -1 60]]", fmt.Sprint(w.do(several...)))
	for name, sample := range samples {
		if reply := flat(w.do(sample.on("{bar}replica"+name)...), nil); sample.Writes() {
			assert.Regexp(t, "^MOVED ", reply, name)
		} else {
			assert.Equal(t, sample.Sample.First, reply, name)
		}
	}
}

// One key of another slot is enough, in each position.
func testCrossSlot(t *testing.T, nodes []*server) {
	owners := map[string]int{"bar": 0, "foo": 2}
	for _, keys := range []string{"foo bar", "bar foo", "bar {bar}x foo {foo}x", "foo {foo}x {foo}y bar"} {
		call := "GO.ALL " + strings.ReplaceAll(keys, " ", " QUOTA 9 60 KEY ") + " QUOTA 9 60"
		for i, n := range nodes {
			want := "CROSSSLOT "
			if i != owners[keys[:3]] && !n.asks() {
				want = "MOVED " // the server sees the first key only
			}
			assert.Contains(t, n.ask(call), want, call)
		}
	}
	for _, key := range []string{"foo", "bar", "{foo}x"} {
		assert.Zero(t, nodes[owners[strings.Trim(key, "{}x")]].Exists(ctx, key).Val())
	}
}
