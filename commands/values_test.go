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
