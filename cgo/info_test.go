package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// field returns the value of a line of INFO.
func field(t *testing.T, h *fakehost.Host, name string) string {
	t.Helper()
	for line := range strings.SplitSeq(h.Info(""), "\r\n") {
		if value, found := strings.CutPrefix(line, "gothrottle_"+name+":"); found {
			return value
		}
	}
	t.Fatalf("no %s in %q", name, h.Info(""))
	return ""
}

// counters returns how many calls of a command were admitted, were limited and were errors.
func counters(t *testing.T, h *fakehost.Host, command string) (n [3]int) {
	t.Helper()
	value := field(t, h, command)
	if _, err := fmt.Sscanf(value, "admitted=%d,limited=%d,errors=%d", &n[0], &n[1], &n[2]); err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	return n
}

func TestInfo(t *testing.T) {
	h := loaded(t)
	if got := field(t, h, "version"); got != "1.20.3" {
		t.Errorf("version %s", got)
	}
	if got := h.Info("gothrottle"); !strings.HasPrefix(got, "# gothrottle\r\n") {
		t.Errorf("INFO gothrottle: %q", got)
	}
	if got := h.Info("memory"); got != "" {
		t.Errorf("INFO memory: %q", got)
	}
	for _, row := range []struct {
		line string
		want [3]int
	}{
		{"GO.THROTTLE k 1 1 1", [3]int{1, 0, 0}},
		{"GO.THROTTLE k 1 1 1 0", [3]int{1, 0, 0}},
		{"GO.THROTTLE k 1 1 1 -1", [3]int{1, 0, 0}},
		{"GO.THROTTLE k 1 1 1 2", [3]int{1, 0, 0}},
		{"GO.THROTTLE k 1 1 1", [3]int{0, 1, 0}},
		{"GO.THROTTLE k 1 1 1 3", [3]int{0, 1, 0}},
		{"GO.THROTTLE k 1 1 x", [3]int{0, 0, 1}},
		{"CL.THROTTLE k 1 1 1 1 1", [3]int{0, 0, 1}},
		{"CL.THROTTLE k 1 1 1", [3]int{0, 1, 0}},
	} {
		names := []string{"go.throttle", "cl.throttle"}
		if row.line[0] == 'C' {
			names[0], names[1] = names[1], names[0]
		}
		mine, other := counters(t, h, names[0]), counters(t, h, names[1])
		call(h, row.line)
		for i, n := range counters(t, h, names[0]) {
			if n-mine[i] != row.want[i] {
				t.Errorf("%s: counted %v after %v", row.line, counters(t, h, names[0]), mine)
			}
		}
		if counters(t, h, names[1]) != other {
			t.Errorf("%s was counted for %s", row.line, names[1])
		}
	}
}

// Each command counts its own calls, and so does each read-only twin.
func TestInfo_eachCommand(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct {
		line string
		want [3]int
	}{
		{"GO.THROTTLE_RO k 15 30 60", [3]int{1, 0, 0}}, {"GO.THROTTLE_RO k 15 30 60 17", [3]int{0, 1, 0}}, {"GO.THROTTLE_RO k 15 30 x", [3]int{0, 0, 1}},
		{"GO.WINDOW_RO k 15 30", [3]int{1, 0, 0}}, {"GO.QUOTA_RO k 15 30 16", [3]int{0, 1, 0}}, {"GO.MTHROTTLE 1 k 15 30 60 1", [3]int{1, 0, 0}},
		{"GO.MTHROTTLE 1 k 0 30 60 1", [3]int{0, 1, 0}}, {"GO.MTHROTTLE 2 k 0 30 60 1", [3]int{0, 0, 1}}, {"GO.MTHROTTLE 2 k k 30 60 1", [3]int{0, 0, 1}},
		{"GO.LEASE l 1 60 a", [3]int{1, 0, 0}}, {"GO.LEASE l 1 60 b", [3]int{0, 1, 0}}, {"GO.RELEASE l b", [3]int{1, 0, 0}}, {"GO.RELEASE k b", [3]int{0, 0, 1}},
	} {
		name := strings.ToLower(strings.Fields(row.line)[0])
		before := counters(t, h, name)
		call(h, row.line)
		after := counters(t, h, name)
		if got := [3]int{after[0] - before[0], after[1] - before[1], after[2] - before[2]}; got != row.want {
			t.Errorf("%s: counted %v", row.line, got)
		}
	}
}
