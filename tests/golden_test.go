package tests

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

const goldenFile = "testdata/golden/states.json"

// goldenStart is the time at which the golden states were made: later than any clock of today, so that a server of today does
// not find them expired.
var goldenStart = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// golden is a state as some version of the module stored it at the key k.
type golden struct {
	Name        string
	Description string
	Make        []string    // the calls that make the state; a line such as "+90s" moves the clock
	Calls       [][2]string // read-only calls half a second later, and their replies
	Dump        []byte      // of DUMP, in base64
	Expires     int64       // ms since the Unix epoch
}

// No transcript has payloads of DUMP: a state that an earlier version stored is read as that version read it, and the module
// stores the same state today, with as many fields or members and the same numbers. The payloads are of Redis 7.0, so newer
// servers load them too.
//
// To add a state: add an element to testdata/golden/states.json with Name, Description, Make and the first word of each pair
// in Calls (the reply is ""), and run this test on Redis 7.0 with the environment variable GOTHROTTLE_GOLDEN=update. That
// fills in what is missing. An element that has a Dump is never changed: other versions stored it. If a version stores a state
// in a new way, remove the calls from the old element's Make, but not its times, and add a new element.
func TestGolden(t *testing.T) {
	lasts(t)
	b, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	var all []*golden
	require.NoError(t, json.Unmarshal(b, &all))
	require.Greater(t, len(all), 8)
	for _, g := range all {
		t.Run(g.Name, g.check)
	}
	if os.Getenv("GOTHROTTLE_GOLDEN") == "update" {
		b, err := json.MarshalIndent(all, "", "\t")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(goldenFile, append(b, '\n'), 0o644))
	}
}

func (g *golden) check(t *testing.T) {
	c := servers.FrozenClock(t, goldenStart)
	s := start(t, options{Clock: c})
	for _, line := range append(g.Make, "+500ms") {
		if text, ok := strings.CutPrefix(line, "+"); ok {
			d, err := time.ParseDuration(text)
			require.NoError(t, err)
			c.Set(c.Wall + d.Microseconds())
			s.sees(c)
			continue
		}
		s.must(line)
	}
	today := s.dataset()["k"]
	if len(g.Dump) == 0 && os.Getenv("GOTHROTTLE_GOLDEN") == "update" {
		require.False(t, s.since(7, 1), "payloads are made on Redis 7.0, so that every server loads them")
		g.Dump, g.Expires = []byte(s.Dump(ctx, "k").Val()), s.PExpireTime(ctx, "k").Val().Milliseconds()
		for i, call := range g.Calls {
			g.Calls[i][1] = s.ask(call[0])
		}
	}
	replies := func() {
		require.NotEmpty(t, g.Calls)
		for _, call := range g.Calls {
			assert.Equal(t, call[1], s.ask(call[0]), call[0])
		}
	}
	if today != "" {
		replies()
	}
	require.NotEmpty(t, g.Dump, "no payload: see the comment of TestGolden")
	require.NoError(t, s.Do(ctx, "RESTORE", "k", g.Expires, string(g.Dump), "ABSTTL", "REPLACE").Err())
	if today != "" {
		assert.Equal(t, s.dataset()["k"], today)
	}
	assert.Equal(t, g.Expires, s.PExpireTime(ctx, "k").Val().Milliseconds())
	replies()
}
