package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/commands/memory"
)

// No transcript has a clock that starts in 1970: there a TAT, and the end of a lockout, may lie before 2001.
func TestThrottle_clockBefore2001(t *testing.T) {
	server := memory.NewServer()
	for _, row := range []struct{ line, want string }{
		{"GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]"}, {"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]"},
		{"GO.THROTTLE l 0 1 60 1 LOCKOUT 90", "[0 1 0 -1 60]"}, {"GO.THROTTLE l 0 1 60 1 LOCKOUT 90", "[1 1 0 90 90]"},
		{"GO.THROTTLE l 0 1 60", "[1 1 0 90 90]"},
	} {
		if got, err := server.Do(1_000_000, strings.Fields(row.line)...); fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v, %v, want %s", row.line, got, err, row.want)
		}
	}
}
