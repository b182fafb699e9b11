package main

import (
	"strings"
	"testing"
)

// A key of a call is there or gone while the server evicts keys. A wrong check of other replies is seen on real servers: it
// finds differences where there are none. This one might find too few.
func TestCheckEvicted(t *testing.T) {
	r := &run{lab: &lab{}, m: newModel(), stats: newStats(&lab{}), evicts: "allkeys-lru"}
	r.m.now, r.m.wall = begin, begin
	for _, c := range []struct {
		call, reply string
		fails       bool
		doubt       int
	}{
		{"GO.QUOTA a 5 60 2", "[0 5 3 -1 60]", false, 0},
		{"GO.QUOTA a 5 60 2", "[0 5 1 -1 60]", false, 0},    // it is there
		{"GO.QUOTA_RO a 5 60 -9", "[0 5 5 -1 0]", false, 0}, // no matter which
		{"GO.QUOTA_RO a 5 60 0", "[0 5 1 -1 60]", false, 0},
		{"GO.QUOTA a 5 60 1", "[0 5 4 -1 60]", false, 0}, // it is gone
		{"GO.QUOTA_RO a 5 60 9", "[0 5 4 -1 60]", true, 0},
		{"GO.QUOTA a 5 60 1", "-OOM command not allowed", false, 0},
		{"GO.QUOTA a 5 60 -9", "[0 5 5 -1 0]", false, 0},
		{"GO.QUOTA a 5 60 1", "[0 5 2 -1 60]", true, 0},
		{"GO.ALL a QUOTA 5 60 KEY b QUOTA 5 60", "[0]", false, 2},
		{"GO.QUOTA b 5 60", "[anything]", false, 2},
	} {
		err := attempt(func() { r.checkOne(0, strings.Fields(c.call), c.reply) })
		if (err != nil) != c.fails || len(r.m.dbs[0].doubt) != c.doubt {
			t.Errorf("%s: %s: %v, %d keys are in doubt", c.call, c.reply, err, len(r.m.dbs[0].doubt))
		}
	}
}
