package tests

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// differs returns the reason for which a case need not hold for a command, "" if it must.
func (r *recorded) differs(name string) string {
	for _, tag := range []string{
		"quirk",      // a bug or an odd choice of redis-cell
		"overflow",   // 64-bit numbers of redis-cell wrap
		"f64",        // the float division of redis-cell rounds
		"internal",   // the encoding of redis-cell
		"introspect", // COMMAND INFO of redis-cell
	} {
		if slices.Contains(r.Tags, tag) {
			return tag
		}
	}
	if strings.HasPrefix(r.Name, "store-") {
		return "redis-cell stores a string, gothrottle a hash"
	}
	return exceptions[name][r.Name]
}

// exceptions lists more cases that need not hold for GO.THROTTLE, each with its reason.
// CL.THROTTLE has no exceptions.
var exceptions = map[string]map[string]string{"GO.THROTTLE": {
	"multi-exec-errors-inside": "the server refuses to queue a call with too few words, as it does " +
		"for its own commands; it knows the arity, which redis-cell does not declare",
	"zero-rate-count-beyond-ns": "GO.THROTTLE accepts more than one unit per ns; redis-cell cuts such an interval to 0",
}}

// checked is the number of cases that hold, of 213. Whoever excludes a case must change it.
const checked = 213 - 50

func TestConformance_redisCellCasesHold(t *testing.T) {
	lasts(t)
	cases := readRecorded(t, "redis-cell.jsonl", 213)
	for _, name := range ourNames {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{})
			held := 0
			for _, r := range cases {
				if r.differs(name) != "" {
					continue
				}
				held++
				t.Run(r.Name, func(t *testing.T) {
					if r.sleeps() {
						t.Parallel() // the case mostly sleeps
					}
					r.hold(t, s, name)
				})
			}
			assert.Equal(t, checked-len(exceptions[name]), held, "number of cases that hold")
		})
	}
}

func TestConformance_crashersAreAnswered(t *testing.T) {
	for _, name := range ourNames {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{})
			for _, r := range readRecorded(t, "crashers.jsonl", 18) {
				t.Run(r.Name, func(t *testing.T) {
					if err := r.replay(s, name, t); err != nil {
						t.Error(err)
					}
					require.Equal(t, "PONG", s.Ping(ctx).Val())
				})
			}
		})
	}
}
