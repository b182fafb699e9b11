package commands

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

const nowMicros = 1_800_000_000_000_000

// newCall returns a call of GO.THROTTLE or CL.THROTTLE on one key.
func newCall(key Key, cells []Cell, words ...string) *Call {
	if len(cells) == 0 {
		cells = []Cell{{}}
	}
	return &Call{Args: words, Keys: []Key{key}, Cells: cells, Now: nowMicros}
}

// hash returns a key that holds the given cells' fields and nothing else.
func hash(cells ...Cell) (Key, []Cell) {
	key := Key{Kind: KindHash}
	for i := range cells {
		cells[i].Index = int32(i)
		for bit := range MaxFields {
			key.Length += int64(cells[i].Found >> bit & 1)
		}
	}
	return key, cells
}

// inMillis is the TAT that many ms from now.
func inMillis(n int64) int64 { return nowMicros*1000 + n*millisecond }

func cellOf(tat, period int64) Cell {
	return Cell{Found: wholeFields, Value: [MaxFields]int64{fieldTAT: tat, fieldPeriod: storedPeriod(period)}}
}

func words(s string) []string { return strings.Fields(s) }

func TestThrottle_reply(t *testing.T) {
	for _, row := range []struct {
		words string
		want  []int64
	}{
		// Seconds, rounded up.
		{"k 15 30 60", []int64{0, 16, 15, -1, 2}},
		{"k 15 7 60", []int64{0, 16, 15, -1, 9}},
		{"k 15 30 60 16", []int64{0, 16, 0, -1, 32}},
		// Milliseconds with MS, for the period and for the reply.
		{"k 15 30 60 1 MS", []int64{0, 16, 15, -1, 2}},
		{"k 15 30 60000 ms", []int64{0, 16, 15, -1, 2000}},
		{"k 15 7 60000 MS", []int64{0, 16, 15, -1, 8572}},
		// A peek, a refund of nothing, more than ever fits.
		{"k 15 30 60 0", []int64{0, 16, 16, -1, 0}},
		{"k 15 30 60 -3", []int64{0, 16, 16, -1, 0}},
		{"k 15 30 60 17", []int64{1, 16, 16, -1, 0}},
	} {
		c := newCall(Key{}, nil, words(row.words)...)
		if err := throttle.Handler(c); err != NoError {
			t.Errorf("%s: %v", row.words, err.Text())
		} else if got := c.Reply[:c.Replies]; !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.words, got, row.want)
		}
	}
}

// effect writes what a call wants of its key in one line.
func effect(c *Call) string {
	var parts []string
	k := &c.Keys[0]
	if k.Remove != 0 {
		parts = append(parts, "remove")
		if k.ExpireFrom == 0 {
			return "remove"
		}
	}
	for _, cell := range c.Cells {
		for i, name := range [MaxFields]string{fieldTAT: "t", fieldPeriod: "p", fieldFrac: "n", fieldCount: "c"} {
			if cell.Index > 0 {
				name = fmt.Sprint(name, cell.Index)
			}
			if cell.Set>>i&1 != 0 {
				v := cell.Value[i]
				if i == fieldTAT {
					v -= nowMicros * 1000
				}
				parts = append(parts, fmt.Sprintf("%s=%d", name, v))
			}
			if cell.Unset>>i&1 != 0 {
				parts = append(parts, "-"+name)
			}
		}
	}
	if k.ExpireFrom != 0 {
		parts = append(parts, fmt.Sprintf("expire+%d..%d", k.ExpireFrom-nowMicros/1000, k.ExpireTo-nowMicros/1000))
	}
	return strings.Join(parts, " ")
}

func TestThrottle_effect(t *testing.T) {
	adopted := Key{Kind: KindString, Text: fmt.Sprint(inMillis(2500))}
	full, fullCell := hash(cellOf(inMillis(32_000), 2*second))
	one, oneCell := hash(cellOf(inMillis(2000), 2*second))
	third, thirdCell := hash(Cell{Found: wholeFields | fracFields,
		Value: [MaxFields]int64{fieldTAT: inMillis(2000), fieldPeriod: 60, fieldFrac: 3, fieldCount: 7}})
	last, lastCell := hash(Cell{Found: wholeFields | fracFields,
		Value: [MaxFields]int64{fieldTAT: math.MaxInt64, fieldPeriod: 60, fieldFrac: 3, fieldCount: 7}})
	two, twoCells := hash(cellOf(inMillis(2000), 2*second), cellOf(inMillis(90_000), 3*second))
	for _, row := range []struct {
		name  string
		key   Key
		cells []Cell
		words string
		want  string
	}{
		// A new key names its rate; a steady one moves its TAT and nothing else.
		{"new", Key{}, nil, "k 15 30 60", "t=2000000000 p=2 expire+2000..10000"},
		{"new with a fraction", Key{}, nil, "k 15 7 60", "t=8571428571 p=60 n=3 c=7 expire+8572..23572"},
		{"steady", one, oneCell, "k 15 30 60", "t=4000000000 expire+4000..12000"},
		{"steady with a fraction", third, thirdCell, "k 15 7 60", "t=10571428571 n=6 expire+10572..25572"},
		{"the same rate in other words", one, oneCell, "k 15 1 2000 MS", "t=4000000000 expire+4000..5000"},
		// The expiry lies at most a quarter of the window or of the period, or a second, after the end.
		{"small window", one, oneCell, "k 1 30 60", "t=4000000000 expire+4000..5000"},
		{"small period", one, oneCell, "k 99999 1 2", "t=4000000000 expire+4000..5000"},
		// What changes nothing writes nothing.
		{"peek", one, oneCell, "k 15 30 60 0", ""},
		{"denied", full, fullCell, "k 15 30 60", ""},
		{"never", one, oneCell, "k 15 30 60 17", ""},
		{"peek at another rate", one, oneCell, "k 15 60 60 0", ""},
		{"never at another rate", one, oneCell, "k 15 60 60 17", ""},
		// A changed rate carries usage over in units, even if it denies.
		{"denied at another rate", full, fullCell, "k 15 60 60", "t=16000000000 p=1 expire+16000..20000"},
		{"admitted at another rate", one, oneCell, "k 15 60 60", "p=1 expire+2000..6000"},
		{"to a fraction", one, oneCell, "k 15 7 60", "t=17142857142 p=60 n=6 c=7 expire+17143..32143"},
		{"from a fraction", third, thirdCell, "k 15 30 60", "t=2466666667 p=2 -n -c expire+2467..10467"},
		// A refund; back to full leaves nothing.
		{"refund", full, fullCell, "k 15 30 60 -1", "t=30000000000 expire+30000..38000"},
		{"refund to full", one, oneCell, "k 15 30 60 -5", "remove"},
		{"refund of nothing", Key{}, nil, "k 15 30 60 -5", "remove"},
		// The last instant there is does not wrap around.
		{"refund at the end of time", last, lastCell, "k 15 7 60 -1", "t=7423372028283347236 n=0 expire+7423372028284..7423372043284"},
		// A redis-cell key is read as it is and gives way to a hash at the first write.
		{"adopted peek", adopted, nil, "k 15 30 60 0", ""},
		{"adopted", adopted, nil, "k 15 30 60", "remove t=4500000000 p=2 expire+4500..12500"},
		{"adopted and denied", adopted, nil, "k 0 30 60", ""},
		// A key with several cells lives as long as the last of them.
		{"first of two", two, twoCells, "k 15 30 60", "t=4000000000 expire+90000..98000"},
		{"refund of the first", two, twoCells, "k 15 30 60 -1", "t=0 expire+90000..98000"},
	} {
		c := newCall(row.key, slices.Clone(row.cells), words(row.words)...)
		if err := throttle.Handler(c); err != NoError {
			t.Errorf("%s: %v", row.name, err.Text())
		} else if got := effect(c); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestThrottle_errors(t *testing.T) {
	foreign := Key{Kind: KindHash, Length: 1}
	extra, extraCell := hash(cellOf(inMillis(1), second))
	extra.Length++
	halfKey, half := hash(Cell{Found: 1 << fieldTAT})
	gapKey, gap := hash(Cell{}, cellOf(inMillis(1), second))
	bad := func(change func(*Cell)) (Key, []Cell) {
		key, cells := hash(Cell{Found: wholeFields | fracFields, Value: [MaxFields]int64{inMillis(1), 1, 1, 7}})
		change(&cells[0])
		return key, cells
	}
	textKey, text := bad(func(c *Cell) { c.Bad = 1 << fieldTAT })
	negativeKey, negative := bad(func(c *Cell) { c.Value[fieldTAT] = -1 })
	noPeriodKey, noPeriod := bad(func(c *Cell) { c.Value[fieldPeriod] = 0 })
	longKey, long := bad(func(c *Cell) { c.Value[fieldPeriod] = maxPeriod/second + 1 })
	longNanosKey, longNanos := bad(func(c *Cell) { c.Value[fieldPeriod] = -maxPeriod - 1 })
	inNanosKey, inNanos := bad(func(c *Cell) { c.Value[fieldPeriod] = -60 * second })
	noCountKey, noCount := bad(func(c *Cell) { c.Value[fieldCount] = 0 })
	fracKey, frac := bad(func(c *Cell) { c.Value[fieldFrac] = 7 })
	secondKey, secondCell := hash(cellOf(inMillis(1), second), cellOf(inMillis(1), 0))

	for _, row := range []struct {
		key   Key
		cells []Cell
		words string
		want  Error
	}{
		{Key{}, nil, "k 1.5 30 60", ErrMaxBurstNotInteger},
		{Key{}, nil, "k -1 30 60", ErrMaxBurstRange},
		{Key{}, nil, "k 1000000000000 30 60", ErrMaxBurstRange},
		{Key{}, nil, "k 99999999999999999999 30 60", ErrMaxBurstRange},
		{Key{}, nil, "k 15 x 60", ErrCountNotInteger},
		{Key{}, nil, "k 15 0 60", ErrCountRange},
		{Key{}, nil, "k 15 1000000000001 60", ErrCountRange},
		{Key{}, nil, "k 15 30 60s", ErrPeriodNotInteger},
		{Key{}, nil, "k 15 30 0", ErrPeriodRangeSeconds},
		{Key{}, nil, "k 0 1 3153600001", ErrPeriodRangeSeconds},
		{Key{}, nil, "k 15 30 0 MS", ErrPeriodRangeMillis},
		{Key{}, nil, "k 0 1 3153600000001 MS", ErrPeriodRangeMillis},
		{Key{}, nil, "k 15 30 60 1x", ErrQuantityNotInteger},
		{Key{}, nil, "k 15 30 60 1000000000002", ErrQuantityRange},
		{Key{}, nil, "k 15 30 60 -1000000000002", ErrQuantityRange},
		{Key{}, nil, "k 1 1 3153600000", ErrWindowTooLong},
		{Key{}, nil, "k 15 30 60 XX", ErrUnknownOption},
		{Key{}, nil, "k 15 30 60 MS 5", ErrUnknownOption},
		{Key{}, nil, "k 15 30 60 ms MS", ErrRepeatedOption},
		{Key{Kind: KindOther}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindZset}, nil, "k 15 30 60", ErrWrongType},
		// Strings: a redis-cell TAT has 19 digits and fits in 63 bits.
		{Key{Kind: KindString, Text: "5"}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindString, Text: ""}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindString, Text: "999999999999999999"}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindString, Text: "0999999999999999999"}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindString, Text: "-100000000000000000"}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindString, Text: "180000000000000000x"}, nil, "k 15 30 60", ErrWrongType},
		{Key{Kind: KindString, Text: "9223372036854775808"}, nil, "k 15 30 60", ErrWrongType},
		// Hashes of someone else.
		{foreign, nil, "k 15 30 60", ErrForeignHash},
		{extra, extraCell, "k 15 30 60", ErrForeignHash},
		{halfKey, half, "k 15 30 60", ErrForeignHash},
		{gapKey, gap, "k 15 30 60", ErrForeignHash},
		// Numbers that no limiter writes.
		{textKey, text, "k 15 30 60", ErrDamaged},
		{negativeKey, negative, "k 15 30 60", ErrDamaged},
		{noPeriodKey, noPeriod, "k 15 30 60", ErrDamaged},
		{longKey, long, "k 15 30 60", ErrDamaged},
		{longNanosKey, longNanos, "k 15 30 60", ErrDamaged},
		{inNanosKey, inNanos, "k 15 30 60", ErrDamaged},
		{noCountKey, noCount, "k 15 30 60", ErrDamaged},
		{fracKey, frac, "k 15 30 60", ErrDamaged},
		{secondKey, secondCell, "k 15 30 60", ErrDamaged},
	} {
		// A peek and a refund see the same errors as a call that takes.
		for _, quantity := range []string{"", " 0", " -1"} {
			if quantity != "" && len(words(row.words)) != 4 {
				continue
			}
			c := newCall(row.key, slices.Clone(row.cells), words(row.words+quantity)...)
			got := throttle.Handler(c)
			if got != row.want {
				t.Errorf("%q on %+v: %q, want %q", row.words+quantity, row.key, got.Text(), row.want.Text())
			}
			if e := effect(c); e != "" {
				t.Errorf("%q: an error wants %q", row.words, e)
			}
		}
	}
}

// CL.THROTTLE takes redis-cell's arguments and no option.
func TestCLThrottle(t *testing.T) {
	c := newCall(Key{}, nil, words("k 15 30 60 MS")...)
	if err := clThrottle.Handler(c); err != ErrQuantityNotInteger {
		t.Errorf("with MS: %q", err.Text())
	}
	c = newCall(Key{}, nil, words("k 15 30 60 4")...)
	if err := clThrottle.Handler(c); err != NoError || !slices.Equal(c.Reply[:c.Replies], []int64{0, 16, 12, -1, 8}) {
		t.Errorf("reply %v, error %q", c.Reply, err.Text())
	}
}
