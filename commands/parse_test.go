package commands

import (
	"math"
	"strings"
	"testing"
)

func TestParseInt(t *testing.T) {
	for _, row := range []struct {
		word string
		want int64
		form number
	}{
		// One optional sign, then digits; leading zeros do not matter.
		{"0", 0, integer},
		{"42", 42, integer},
		{"+5", 5, integer},
		{"-5", -5, integer},
		{"-0", 0, integer},
		{"007", 7, integer},
		{"+000000000000000000000000000000000000012", 12, integer},
		// The whole range of 64 bits, and not one more.
		{"9223372036854775807", math.MaxInt64, integer},
		{"-9223372036854775808", math.MinInt64, integer},
		{"9223372036854775808", 0, tooLarge},
		{"-9223372036854775809", 0, tooLarge},
		{"18446744073709551615", 0, tooLarge},
		{"18446744073709551616", 0, tooLarge},
		{"18446744073709551626", 0, tooLarge},
		{"99999999999999999999999999", 0, tooLarge},
		// Nothing else is an integer.
		{"", 0, notInteger},
		{"+", 0, notInteger},
		{"-", 0, notInteger},
		{"+-5", 0, notInteger},
		{" 5", 0, notInteger},
		{"5 ", 0, notInteger},
		{"1.0", 0, notInteger},
		{"1e3", 0, notInteger},
		{"0x10", 0, notInteger},
		{"5\x00", 0, notInteger},
		{"\xff", 0, notInteger},
		{"99999999999999999999999999x", 0, notInteger},
	} {
		got, form := parseInt(row.word)
		if got != row.want || form != row.form {
			t.Errorf("parseInt(%q) = %d, %d; want %d, %d", row.word, got, form, row.want, row.form)
		}
	}
}

// EXACT and ALIGN and UPTO are read like MS: once each, in any case and order, up to the end.
func TestOptions(t *testing.T) {
	for _, row := range []struct {
		words   []string
		allowed option
		want    option
		align   int
		err     ErrorCode
		named   int32 // ErrWord
	}{
		{nil, optMS, 0, 0, NoError, 0},
		{[]string{"MS"}, optMS, optMS, 0, NoError, 0},
		{[]string{"mS"}, optMS, optMS, 0, NoError, 0},
		{[]string{"UPTO", "EXACT", "MS"}, optMS | optUpTo | optExact, optMS | optUpTo | optExact, 0, NoError, 0},
		{[]string{"ALIGN", "MS", "MS"}, optMS | optAlign, optMS | optAlign, 1, NoError, 0},
		{[]string{"MS", "ALIGN"}, optMS | optAlign, 0, 0, ErrAlignWithoutOffset, 0},
		{[]string{"MS", "ms"}, optMS, 0, 0, ErrRepeatedOption, 2},
		{[]string{"m\u017f"}, optMS, 0, 0, ErrUnknownOption, 1}, // a long s
		{[]string{"MSX"}, optMS, 0, 0, ErrUnknownOption, 1},
		{[]string{"MS", ""}, optMS, 0, 0, ErrUnknownOption, 2},
		{[]string{"MS"}, 0, 0, 0, ErrUnknownOption, 1},
	} {
		c := Call{Args: row.words}
		got, align, err := c.options(0, row.allowed)
		if got != row.want || align != row.align || err != row.err || c.ErrWord != row.named {
			t.Errorf("%q of %b: %b, %d, %v, word %d", row.words, row.allowed, got, align, err, c.ErrWord)
		}
	}
}

// A quantity may have a sign, also where an option may stand in its place.
func TestQuantity_signs(t *testing.T) {
	for _, row := range []struct {
		quantity string
		want     string
	}{
		{"2", "[0 5 3 -1 60]"}, {"+2", "[0 5 3 -1 60]"}, {"002", "[0 5 3 -1 60]"}, {"-2", "[0 5 5 -1 0]"}, {"+0", "[0 5 5 -1 0]"},
	} {
		for _, call := range []string{"GO.WINDOW k 5 60 ", "GO.QUOTA k 5 60 ", "GO.THROTTLE k 4 5 150 ", "CL.THROTTLE k 4 5 150 "} {
			if got := newStore(t).told(call + row.quantity); got != row.want {
				t.Errorf("%s: %s", call+row.quantity, got)
			}
		}
		for _, call := range []string{"WINDOW 5 60 ", "QUOTA 5 60 ", "THROTTLE 4 5 150 "} {
			got := newStore(t).told("GO.ALL k " + call + row.quantity)
			if want := strings.TrimSuffix(row.want, "]") + " 0 " + row.want + "]"; got != want {
				t.Errorf("%s: %s", call+row.quantity, got)
			}
		}
	}
}
