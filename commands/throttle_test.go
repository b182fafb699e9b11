package commands

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// none stands for a field that is absent.
const none = math.MinInt64

// hash returns a value with the fields 0, 1, 2 and so on, and an expiry.
func hash(fields ...int64) *value {
	v := &value{kind: KindHash, fields: map[string]string{}, expire: math.MaxInt64}
	for i, n := range fields {
		if n != none {
			v.fields[fieldName(i%4, i/4)] = fmt.Sprint(n)
		}
	}
	return v
}

// text returns a string with an expiry.
func text(s string) *value { return &value{kind: KindString, text: s, expire: math.MaxInt64} }

// with returns a copy of a value in which one field is another text.
func (v *value) with(field, text string) *value {
	c := v.clone()
	c.fields[field] = text
	return c
}

// inMillis is the TAT that many ms from now.
func inMillis(n int64) int64 {
	return int64(funnel.Micros(nowMicros).Nanos()) + n*int64(funnel.Millisecond)
}

// onKey runs a call on a store whose key k holds v, which may be nil.
func onKey(t *testing.T, v *value, line string) (*store, ErrorCode) {
	t.Helper()
	s := newStore(t)
	if v != nil {
		s.keys["k"] = v.clone()
	}
	_, err := s.run(strings.Fields(line)...)
	return s, err
}

// wantEffect makes a call on a store whose key k holds v, and checks what becomes of the key.
func wantEffect(t *testing.T, name string, v *value, line, want string) {
	t.Helper()
	s, err := onKey(t, v, line)
	if err != NoError {
		t.Errorf("%s: %v", name, err.Text())
	} else if got := s.effect(); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// effect writes what the last call wants of its first key. The TAT and the expiry are
// relative to now.
func (s *store) effect() string {
	k := &s.call.Keys[0]
	switch k.Becomes {
	case Unchanged:
		return ""
	case Absent:
		return "absent"
	}
	var parts []string
	for _, cell := range s.call.cells(k) {
		for i, name := range [MaxFields]string{fieldTAT: "t", fieldPeriod: "p", fieldFrac: "f", fieldCount: "c", fieldLocked: "l"} {
			if cell.Index > 0 {
				name = fmt.Sprint(name, cell.Index)
			}
			if cell.Set>>i&1 != 0 {
				v := cell.Value[i]
				if i == fieldTAT || i == fieldLocked {
					v -= inMillis(0)
				}
				parts = append(parts, fmt.Sprintf("%s=%d", name, v))
			}
			if cell.Unset>>i&1 != 0 {
				parts = append(parts, "-"+name)
			}
		}
	}
	millis := int64(s.now / 1000)
	return strings.Join(append(parts, fmt.Sprintf("expire+%d..%d", k.ExpireFrom-millis, k.ExpireTo-millis)), " ")
}

func TestThrottle_reply(t *testing.T) {
	wantTold(t, []toldRow{
		// Seconds, rounded up.
		{"GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]"},
		{"GO.THROTTLE k 15 7 60", "[0 16 15 -1 9]"},
		{"GO.THROTTLE k 15 30 60 16", "[0 16 0 -1 32]"},
		// Milliseconds with MS, for the period and for the reply.
		{"GO.THROTTLE k 15 30 60 1 MS", "[0 16 15 -1 2]"},
		{"GO.THROTTLE k 15 30 60000 ms", "[0 16 15 -1 2000]"},
		{"GO.THROTTLE k 15 7 60000 MS", "[0 16 15 -1 8572]"},
		// A peek, a refund of nothing, more than ever fits.
		{"GO.THROTTLE k 15 30 60 0", "[0 16 16 -1 0]"},
		{"GO.THROTTLE k 15 30 60 -3", "[0 16 16 -1 0]"},
		{"GO.THROTTLE k 15 30 60 17", "[1 16 16 -1 0]"},
		// After a partial grant the wait is that for one more unit.
		{"GO.THROTTLE k 15 30 60 16 UPTO", "[0 16 0 -1 32 16]"},
		{"GO.THROTTLE k 15 30 60 17 UPTO", "[0 16 0 2 32 16]"},
		{"GO.THROTTLE k 15 7 60 99 UPTO", "[0 16 0 9 138 16]"},
	})
}

func TestThrottle_effect(t *testing.T) {
	adopted := text(fmt.Sprint(inMillis(2500)))
	full := hash(inMillis(32_000), 2)
	one := hash(inMillis(2000), 2)
	third := hash(inMillis(2000), 60, 3, 7)
	last := hash(math.MaxInt64, 60, 3, 7)
	two := hash(inMillis(2000), 2, none, none, inMillis(90_000), 3)
	for _, row := range []struct {
		name  string
		key   *value
		words string
		want  string
	}{
		// A call on a new key stores the rate. Later calls change the TAT alone.
		{"new", nil, "15 30 60", "t=2000000000 p=2 expire+2000..10000"},
		{"new with a fraction", nil, "15 7 60", "t=8571428571 p=60 f=3 c=7 expire+8572..23572"},
		{"steady", one, "15 30 60", "t=4000000000 expire+4000..12000"},
		{"steady with a fraction", third, "15 7 60", "t=10571428571 f=6 expire+10572..25572"},
		{"a fraction of a ns after a whole ms", hash(inMillis(10_000)-8_571_428_571, 60, 0, 7), "15 7 60", "t=10000000000 f=3 expire+10001..25001"},
		{"the same rate in other words", one, "15 1 2000 1 MS", "t=4000000000 expire+4000..5000"},
		// The expiry lies at most a quarter of the window or of the period, or a second, after the end.
		{"small window", one, "1 30 60", "t=4000000000 expire+4000..5000"},
		{"small period", one, "99999 1 2", "t=4000000000 expire+4000..5000"},
		// What changes nothing writes nothing.
		{"peek", one, "15 30 60 0", ""},
		{"denied", full, "15 30 60", ""},
		{"never", one, "15 30 60 17", ""},
		{"peek at another rate", one, "15 60 60 0", ""},
		{"never at another rate", one, "15 60 60 17", ""},
		// A changed rate carries usage over in units, even if it denies.
		{"denied at another rate", full, "15 60 60", "t=16000000000 p=1 expire+16000..20000"},
		{"admitted at another rate", one, "15 60 60", "p=1 expire+2000..6000"},
		{"to a fraction", one, "15 7 60", "t=17142857142 p=60 f=6 c=7 expire+17143..32143"},
		{"from a fraction", third, "15 30 60", "t=2466666667 p=2 -f -c expire+2467..10467"},
		// A refund; back to full leaves nothing. A refund of nothing writes nothing.
		{"refund", full, "15 30 60 -1", "t=30000000000 expire+30000..38000"},
		{"refund to full", one, "15 30 60 -5", "absent"},
		{"refund of nothing", nil, "15 30 60 -5", ""},
		{"refund of nothing any more", hash(inMillis(0), 2), "15 30 60 -5", ""},
		{"refund of nothing at another rate", hash(inMillis(-1), 2), "15 60 60 -5", ""},
		{"refund of nothing, another cell is in use", hash(inMillis(0), 2, none, none, inMillis(90_000), 3), "15 30 60 -5", ""},
		{"refund of nothing, the cell of redis-cell", text(fmt.Sprint(inMillis(-1))), "15 30 60 -5", ""},
		// Usage that would drain after 2262 at the call's rate stays at its own rate.
		{"denied, drains after 2262", hash(inMillis(3_600_000_000), 1), "0 1 3600", ""},
		{"refund, drains after 2262", hash(inMillis(3_600_000_000), 1), "0 1 3600 -1", "t=3599999000000000 expire+3599999000..3600899000"},
		// The last instant there is does not wrap around.
		{"refund at the end of time", last, "15 7 60 -1", "t=7423372028283347236 f=0 expire+7423372028284..7423372043284"},
		// A redis-cell key is read as it is and gives way to a hash at the first write.
		{"adopted peek", adopted, "15 30 60 0", ""},
		{"adopted", adopted, "15 30 60", "t=4500000000 p=2 expire+4500..12500"},
		{"adopted and denied", adopted, "0 30 60", ""},
		// A key with several cells lives as long as the last of them.
		{"first of two", two, "15 30 60", "t=4000000000 expire+90000..98000"},
		{"refund of the first", two, "15 30 60 -1", "t=0 expire+90000..98000"},
	} {
		wantEffect(t, row.name, row.key, "GO.THROTTLE k "+row.words, row.want)
	}
}

// On a server whose clock starts in 1970, a TAT before 2001 is valid.
func TestThrottle_clockBefore2001(t *testing.T) {
	s := newStore(t)
	s.now = 1_000_000
	if got := s.told("GO.THROTTLE k 15 30 60"); got != "[0 16 15 -1 2]" {
		t.Errorf("new: %s", got)
	}
	if got := s.told("GO.THROTTLE k 15 30 60"); got != "[0 16 14 -1 4]" {
		t.Errorf("the second call: %s", got)
	}
}

// No transcript has a clock that starts in 1970: there a lockout may end before 2001.
func TestLockout_clockBefore2001(t *testing.T) {
	s := newStore(t)
	s.now = 1_000_000
	for _, want := range []string{"[0 1 0 -1 60]", "[1 1 0 90 90]", "[1 1 0 90 90]"} {
		if got := s.told("GO.THROTTLE k 0 1 60 1 LOCKOUT 90"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// CL.THROTTLE takes redis-cell's arguments and no option.
func TestCLThrottle(t *testing.T) {
	wantTold(t, []toldRow{
		{"CL.THROTTLE k 15 30 60 4", "[0 16 12 -1 8]"},
		{"CL.THROTTLE k 15 30 60", "[0 16 15 -1 2]"},
		{"CL.THROTTLE k 15 30 60 MS", "ERR quantity is not an integer"},
		{"CL.THROTTLE k 15 30 60 1 MS", "ERR wrong number of arguments"},
	})
}

// A further cell whose TAT is the last that there can be keeps the key: its rest does not overflow.
func TestThrottle_lastTATInAFurtherCell(t *testing.T) {
	s := newStore(t)
	s.keys["k"] = &value{kind: KindHash, fields: map[string]string{
		"0": fmt.Sprint(s.now.Nanos()), "1": "2", "4": fmt.Sprint(int64(math.MaxInt64)), "5": "60", "6": "3", "7": "7"}}
	s.must("GO.THROTTLE k 15 30 60")
	if v := s.keys["k"]; v == nil || v.expire < math.MaxInt64/1_000_000 {
		t.Errorf("left %+v", v)
	}
}
