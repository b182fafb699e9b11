package commands

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// GO.INFO tells what calls have left at a key.
func TestInfo(t *testing.T) {
	cell := func(inUse, count, period, empty, locked any) string {
		return fmt.Sprintf("[in_use %v count %v period_ms %v empty_in_ms %v locked_for_ms %v]", inUse, count, period, empty, locked)
	}
	throttle := func(expires int, cells ...string) string {
		return fmt.Sprintf("[kind throttle expires_in_ms %d cells [%s]]", expires, strings.Join(cells, " "))
	}
	// Cells. What has partly drained counts as a whole unit.
	converse(t, []step{
		{0, "GO.INFO k", "(nil)"},
		{0, "GO.THROTTLE k 15 30 60 3", "0 16 13 -1 6"},
		{0, "GO.INFO k", throttle(6000+8000, cell(3, 1, 2000, 6000, 0))},
		{1, "GO.INFO k", throttle(13_999, cell(3, 1, 2000, 5999, 0))},
		{1999, "GO.INFO k", throttle(12_000, cell(2, 1, 2000, 4000, 0))},
		{4000, "GO.INFO k", throttle(8000, cell(0, 1, 2000, 0, 0))}, // nothing is in use, but the key still stands
		{8001, "GO.INFO k", "(nil)"},
		{0, "GO.THROTTLE k 0 7 60 1", "0 1 0 -1 9"},
		{0, "GO.INFO k", throttle(8572+2142, cell(1, 7, 60_000, 8572, 0))},
		{0, "GO.ALL a THROTTLE 9 10 1 4 THROTTLE 99 1 7 5 MS", "0 10 6 -1 1 0 [0 10 6 -1 1] [0 100 95 -1 35]"},
		{0, "GO.INFO a", throttle(35+1000, cell(4, 10, 1, 1, 0), cell(5, 1, 7, 35, 0))},
		{0, "GO.THROTTLE d 0 1 1 5 FORCE", "0 1 0 -1 5"}, // debt
		{0, "GO.INFO d", throttle(6000, cell(5, 1, 1000, 5000, 0))},
	})
	// A lockout stands after everything has drained.
	converse(t, []step{
		{0, "GO.THROTTLE k 0 1 60 1 LOCKOUT 900", "0 1 0 -1 60"},
		{0, "GO.THROTTLE k 0 1 60 1 LOCKOUT 900", "1 1 0 900 900"},
		{0, "GO.INFO k", throttle(915_000, cell(1, 1, 60_000, 60_000, 900_000))},
		{60_001, "GO.INFO k", throttle(854_999, cell(0, 1, 60_000, 0, 839_999))},
		{839_999, "GO.INFO k", throttle(15_000, cell(0, 1, 60_000, 0, 0))},
	})
	// Windows: dead entries are told until a call clears them away.
	window := func(expires, entries, recorded, newest, oldest int) string {
		return fmt.Sprintf("[kind window expires_in_ms %d entries %d recorded %d newest_age_ms %d oldest_age_ms %d]", expires, entries, recorded, newest, oldest)
	}
	converse(t, []step{
		{0, "GO.WINDOW k 10 60 3", "0 10 7 -1 60"},
		{0, "GO.INFO k", window(75_000, 1, 3, 0, 0)},
		{50_000, "GO.WINDOW k 10 60 4", "0 10 3 -1 60"},
		{7, "GO.INFO k", window(74_993, 2, 7, 7, 50_007)},
		{0, "GO.WINDOW k 10 60 -2", "0 10 5 -1 60"},
		{0, "GO.INFO k", window(74_993, 2, 5, 7, 50_007)},
		{60_000, "GO.WINDOW_RO k 10 60 0", "0 10 10 -1 0"},
		{0, "GO.INFO k", window(14_993, 2, 5, 60_007, 110_007)},
	})
	s := converse(t, []step{{0, "GO.WINDOW k 200 60 1 EXACT", "0 200 199 -1 60"}})
	for range 150 {
		s.now++
		s.must("GO.WINDOW k 200 60 1 EXACT")
	}
	s.must("GO.WINDOW k 200 60 -200")
	if got := s.told("GO.INFO k"); got != window(75_000, 151, 0, 0, 0) {
		t.Errorf("an emptied window: %s", got)
	}
	// Fixed windows.
	converse(t, []step{
		{0, "GO.QUOTA k 10 60 3", "0 10 7 -1 60"},
		{1, "GO.INFO k", "[kind quota expires_in_ms 74999 used 3 ends_in_ms 59999]"},
		{59_998, "GO.INFO k", "[kind quota expires_in_ms 15001 used 3 ends_in_ms 1]"},
		{1, "GO.INFO k", "[kind quota expires_in_ms 15000 used 0 ends_in_ms 0]"},
	})
	// Leases.
	converse(t, []step{
		{0, "GO.LEASE k 9 60 a", "0 9 8 -1 60 0"},
		{0, "GO.LEASE k 9 30 b", "0 9 7 -1 60 0"},
		{0, "GO.LEASE k 9 90 c", "0 9 6 -1 90 0"},
		{0, "GO.INFO k", "[kind lease expires_in_ms 112500 held 3 holders [c 90000 a 60000 b 30000]]"},
		{30_000, "GO.INFO k", "[kind lease expires_in_ms 82500 held 2 holders [c 60000 a 30000]]"},
		{60_000, "GO.INFO k", "[kind lease expires_in_ms 22500 held 0 holders []]"},
	})
}

// GO.INFO tells at most maxHolders holders, those whose slots lapse last, and counts all.
func TestInfo_manyLeases(t *testing.T) {
	s := newStore(t)
	for i := range 300 {
		s.must(fmt.Sprintf("GO.LEASE k 1000 %d id%d", 100+i, i))
	}
	for _, row := range []struct{ wait, held, told int }{{0, 300, 128}, {271, 128, 128}, {1, 127, 127}, {127, 0, 0}} {
		s.now += funnel.Micros(row.wait) * 1_000_000
		text := s.told("GO.INFO k")
		if !strings.Contains(text, fmt.Sprintf(" held %d holders [", row.held)) || strings.Count(text, "id") != row.told {
			t.Errorf("%+v: %s", row, text)
		}
		if row.told > 0 && !strings.Contains(text, "holders [id299 ") {
			t.Errorf("%+v: the first holder is not the one that lapses last: %s", row, text)
		}
		if row.told == maxHolders && strings.Contains(text, "id171 ") {
			t.Errorf("%+v: told a holder that lapses before others that are not told: %s", row, text)
		}
	}
}

// Cells that redis-cell wrote have no rate.
func TestInfo_adopted(t *testing.T) {
	s := newStore(t)
	s.keys["k"] = text("1800000007000000001")
	s.keys["k"].expire = 0
	want := "[kind throttle expires_in_ms -1 cells [[in_use (nil) count (nil) period_ms (nil) empty_in_ms %d locked_for_ms 0]]]"
	if got := s.told("GO.INFO k"); got != fmt.Sprintf(want, 7001) {
		t.Errorf("%s", got)
	}
	s.now += 8_000_000
	if got := s.told("GO.INFO k"); got != fmt.Sprintf(want, 0) {
		t.Errorf("%s", got)
	}
}

// A key that a user has made persistent shows -1. An expiry that the module's clock has passed, or
// that is too far for a clock in ns, is told as well as it can be.
func TestInfo_expiry(t *testing.T) {
	s := newStore(t)
	s.must("GO.QUOTA k 10 60")
	for _, row := range []struct{ expire, want int64 }{
		{0, -1}, {nowMicros / 1000, 0}, {nowMicros/1000 + 1, 1}, {1 << 62, (1<<63-1)/1_000_000 - nowMicros/1000},
	} {
		s.keys["k"].expire = row.expire
		want := fmt.Sprintf("[kind quota expires_in_ms %d used 1 ends_in_ms 60000]", row.want)
		if got := s.told("GO.INFO k"); got != want {
			t.Errorf("expiry %d: %s, want %s", row.expire, got, want)
		}
	}
	// A part of a ms is rounded up.
	s.now += 1
	if got := s.told("GO.INFO k"); !strings.HasSuffix(got, " ends_in_ms 60000]") {
		t.Error(got)
	}
}

// The reference explains each field of a reply, and no other.
func TestInfo_reference(t *testing.T) {
	s := newStore(t)
	for _, line := range []string{"GO.THROTTLE t 1 1 1", "GO.WINDOW w 1 1", "GO.QUOTA q 1 1", "GO.LEASE l 1 1 a"} {
		s.must(line)
	}
	exist := map[string]bool{}
	for _, key := range []string{"t", "w", "q", "l"} {
		text := s.told("GO.INFO " + key)
		for i, it := range s.items {
			if it.kind == ItemText && it.text != "a" && s.items[i-1].text != "kind" {
				exist["`"+it.text+"`"] = true
			}
		}
		if !strings.HasPrefix(text, "[kind ") {
			t.Error(text)
		}
	}
	fields, documented := []string{}, []string{}
	for name := range exist {
		fields = append(fields, name)
	}
	section := reference(t).section(t, "GO.INFO")
	for _, row := range section.tables("field") {
		documented = append(documented, row[0])
	}
	same(t, "fields of GO.INFO", documented, fields)
	if !strings.Contains(section.prose(), fmt.Sprintf("If more than %d slots are held, it has the %d that lapse last.", maxHolders, maxHolders)) {
		t.Error("the reference does not tell how many holders GO.INFO tells")
	}
}
