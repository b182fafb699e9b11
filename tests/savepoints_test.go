package tests

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call of GO.THROTTLE counts as a change for the save points if it has an effect.
func TestStream_effectsCountForSavePoints(t *testing.T) {
	s := start(t, options{}) // there is neither a replica nor an append-only file
	changes := func() int {
		var n int
		_, err := fmt.Sscan(s.info("persistence", "rdb_changes_since_last_save"), &n)
		require.NoError(t, err)
		return n
	}
	for _, c := range []struct {
		call    string
		changes bool
	}{
		{"k 1 1 3600 0", false},
		{"k 1 1 3600 3", false},
		{"k 1 1 3600 1", true},
		{"k 1 1 3600 1", true},
		{"k 1 1 3600 1", false},
		{"k 1 1 3600 0", false},
		{"k 1 x 3600 1", false},
		{"k 1 1 1800 1", true},
		{"k 1 1 1800 -2", true},
		{"k 1 1 1800 -2", false},
	} {
		before := changes()
		s.Do(ctx, append([]any{"GO.THROTTLE"}, fields(c.call)...)...)
		assert.Equal(t, c.changes, changes() > before, c.call)
	}
}

// A call of any other command counts as a change for the save points if it has an effect.
func TestStream_effectsOfEveryCommandCountForSavePoints(t *testing.T) {
	s := start(t, options{}) // there is neither a replica nor an append-only file
	changes := func() string { return s.info("persistence", "rdb_changes_since_last_save") }
	for _, c := range []struct {
		call    string
		changes bool
	}{
		{"GO.WINDOW w 2 3600 0", false},
		{"GO.WINDOW w 2 3600 2", true},
		{"GO.WINDOW w 2 3600 1", false},
		{"GO.WINDOW w 2 3600 -1", true},
		{"GO.WINDOW w 2 3600 -1", true},
		{"GO.WINDOW w 2 3600 -1", false},
		{"GO.QUOTA q 2 3600 0", false},
		{"GO.QUOTA q 2 3600 2", true},
		{"GO.QUOTA q 2 3600 1", false},
		{"GO.QUOTA q 2 3600 -1", true},
		{"GO.QUOTA q 2 3600 -1", true},
		{"GO.QUOTA q 2 3600 -1", false},
		{"GO.THROTTLE t 0 1 3600 2 FORCE", true},
		{"GO.THROTTLE t 0 1 3600 0 FORCE", false},
		{"GO.THROTTLE t 0 1 3600 1 RESERVE 1", false},
		{"GO.THROTTLE t 0 1 3600 1 RESERVE 7200", true},
		{"GO.THROTTLE t 0 1 3600 1 LOCKOUT 60", true},
		{"GO.THROTTLE t 0 1 3600 1 LOCKOUT 60", false},
		{"GO.WINDOW w 2 3600 9 FORCE", true},
		{"GO.WINDOW w 2 3600 0 FORCE", false},
		{"GO.QUOTA q 2 3600 9 FORCE", true},
		{"GO.QUOTA q 2 3600 0 FORCE", false},
		{"GO.ALL m THROTTLE 1 1 3600 1 KEY n THROTTLE 1 1 3600 0", true},
		{"GO.ALL m THROTTLE 1 1 3600 0 KEY n THROTTLE 1 1 3600 0", false},
		{"GO.ALL m THROTTLE 1 1 3600 1 KEY n THROTTLE 1 1 3600 3", false},
		{"GO.ALL m THROTTLE 1 1 3600 -2 KEY n THROTTLE 1 1 3600 0", true},
		{"GO.ALL am WINDOW 2 3600 KEY an QUOTA 2 3600 0", true},
		{"GO.ALL am WINDOW 2 3600 KEY an QUOTA 2 3600 3", false},
		{"GO.ALL_RO am WINDOW 2 3600 KEY an QUOTA 2 3600", false},
		{"GO.LEASE_RO l 1 60 a", false},
		{"GO.LEASE l 1 60 a", true},
		{"GO.LEASE l 1 60 b", false},
		{"GO.RELEASE l b", false},
		{"GO.RELEASE l a", true},
		{"GO.THROTTLE_RO k 1 1 60", false},
		{"GO.WINDOW_RO k 1 60", false},
		{"GO.QUOTA_RO k 1 60", false},
	} {
		before := changes()
		s.must(c.call)
		assert.Equal(t, c.changes, changes() != before, c.call)
	}
}
