package tests

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	goldenFile = "testdata/golden/states.json"
	goldenKey  = "k"
)

// goldenStart is the time at which the golden states were made: later than any clock of today,
// so that a server of today does not find them expired.
var goldenStart = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)

// golden is a state as some version of the module stored it.
type golden struct {
	Name        string
	Description string
	// Make holds the calls that make the state at the key k. A line such as "+90s" moves the
	// clock instead. The clock then stands half a second after a full one.
	Make    []string
	Calls   [][2]string // read-only calls after Make, and their replies
	Dump    []byte      // of DUMP, in base64
	Expires int64       // ms since the Unix epoch
}

func readGolden(t *testing.T) (all []golden) {
	t.Helper()
	b, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &all))
	return all
}

// run starts a server at goldenStart, makes the state there unless the state is restored, and
// leaves the clock as Make does.
func (g *golden) run(t *testing.T, restore bool) *server {
	t.Helper()
	c := newClock(t)
	now := goldenStart
	c.freeze(now)
	s := start(t, options{clock: c})
	if restore {
		require.NoError(t, s.Do(ctx, "RESTORE", goldenKey, g.Expires, string(g.Dump), "ABSTTL").Err(), g.Name)
	}
	for _, line := range g.Make {
		if text, ok := strings.CutPrefix(line, "+"); ok {
			d, err := time.ParseDuration(text)
			require.NoError(t, err, g.Name)
			now = now.Add(d)
			c.freeze(now)
			s.sees(now)
		} else if !restore {
			s.must(line)
		}
	}
	now = now.Add(halfSecond)
	c.freeze(now)
	s.sees(now)
	return s
}

// A state that an earlier version stored is read as that version read it. The payloads are of
// Redis 7.0, so newer servers load them too.
//
// To add a state: add an element to testdata/golden/states.json with Name, Description, Make and
// the first word of each pair in Calls (the reply is ""), and run the tests of Redis 7.0
// with the environment variable GOTHROTTLE_GOLDEN=update. That fills in what is missing. An
// element that has a Dump is never changed: other versions stored it. If a version stores a
// state in a new way, remove Make from the old element and add a new one.
func TestGolden_oldStatesAreRead(t *testing.T) {
	lasts(t)
	all := readGolden(t)
	if os.Getenv("GOTHROTTLE_GOLDEN") == "update" {
		updateGolden(t, all)
	}
	require.Greater(t, len(all), 8)
	for _, g := range all {
		t.Run(g.Name, func(t *testing.T) {
			require.NotEmpty(t, g.Dump, "no payload: see the comment of this test")
			s := g.run(t, true)
			require.NotEmpty(t, g.Calls)
			for _, call := range g.Calls {
				assert.Equal(t, call[1], s.ask(call[0]), call[0])
			}
			assert.Equal(t, g.Expires, s.expiry(goldenKey))
		})
	}
}

// The module stores the same states today: as many fields or members, with the same numbers.
func TestGolden_todaysStatesHaveTheSameFormat(t *testing.T) {
	lasts(t)
	for _, g := range readGolden(t) {
		if len(g.Make) == 0 {
			continue // an older format
		}
		t.Run(g.Name, func(t *testing.T) {
			old, today := g.run(t, true), g.run(t, false)
			assert.Equal(t, roundTimes(t, old.dataset()), roundTimes(t, today.dataset()))
			for _, call := range g.Calls {
				assert.Equal(t, call[1], today.ask(call[0]), call[0])
			}
		})
	}
}

// roundTimes replaces the instants in a data set, which have at least 13 digits, with seconds
// since goldenStart and the number of their digits.
func roundTimes(t *testing.T, data map[string]string) string {
	t.Helper()
	text := data["0 "+goldenKey]
	require.NotEmpty(t, text)
	return regexp.MustCompile(`\d{13,}`).ReplaceAllStringFunc(text, func(digits string) string {
		n, err := strconv.ParseInt(digits, 10, 64)
		require.NoError(t, err, text)
		unit := map[int]int64{13: 1e3, 16: 1e6, 19: 1e9}[len(digits)]
		require.NotZero(t, unit, text)
		return strconv.FormatInt((n+unit/2)/unit-goldenStart.Unix(), 10) + " s in " + strconv.Itoa(len(digits)) + " digits"
	})
}

// updateGolden fills in what is missing and writes the file.
func updateGolden(t *testing.T, all []golden) {
	t.Helper()
	for i := range all {
		g := &all[i]
		if len(g.Dump) > 0 {
			continue
		}
		s := g.run(t, false)
		require.False(t, s.since(7, 1), "payloads are made on Redis 7.0, so that every server loads them")
		g.Dump, g.Expires = []byte(s.Dump(ctx, goldenKey).Val()), s.expiry(goldenKey)
		for j := range g.Calls {
			g.Calls[j][1] = s.ask(g.Calls[j][0])
		}
		s.terminate()
	}
	b, err := json.MarshalIndent(all, "", "\t")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(goldenFile, append(b, '\n'), 0o644))
}
