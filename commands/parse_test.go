package commands

import (
	"math"
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

func TestParseOptions(t *testing.T) {
	for _, row := range []struct {
		words   []string
		allowed option
		want    option
		err     Error
	}{
		{nil, optMS, 0, NoError},
		{[]string{"MS"}, optMS, optMS, NoError},
		{[]string{"mS"}, optMS, optMS, NoError},
		{[]string{"MS", "ms"}, optMS, 0, ErrRepeatedOption},
		{[]string{"m\u017f"}, optMS, 0, ErrUnknownOption}, // a long s
		{[]string{"MSX"}, optMS, 0, ErrUnknownOption},
		{[]string{""}, optMS, 0, ErrUnknownOption},
		{[]string{"MS"}, 0, 0, ErrUnknownOption},
	} {
		got, _, err := parseOptions(row.words, row.allowed)
		if got != row.want || err != row.err {
			t.Errorf("parseOptions(%q, %b) = %b, %v; want %b, %v", row.words, row.allowed, got, err, row.want, row.err)
		}
	}
}
