// Package hashtext lets tests write the hashes of GCRA limiters so that a person can read
// them. In a hash the fields are numbers; here a field is a letter for what it holds, and the
// number of its cell unless that is the first: t the TAT, p the period, n the rest of the TAT,
// c the count. All periods are in ns. It knows the format from the command reference, not
// from package commands, so that the tests notice when that changes.
package hashtext

import (
	"slices"
	"strconv"
	"strings"
)

const letters = "tpnc"

// Field returns the name of a field that is written so, and any other text as it is.
func Field(text string) string {
	if text == "" || !strings.Contains(letters, text[:1]) {
		return text
	}
	cell, err := strconv.Atoi("0" + text[1:])
	if err != nil {
		return text
	}
	return strconv.Itoa(len(letters)*cell + strings.Index(letters, text[:1]))
}

// Value returns the value of a field as it is stored: a period of whole seconds as such,
// another one as ns with the sign turned. The tests write all in ns.
func Value(field, text string) string {
	ns, err := strconv.ParseInt(text, 10, 64)
	switch {
	case field[:1] != "p" || err != nil || ns <= 0:
		return text
	case ns%1_000_000_000 == 0:
		return strconv.FormatInt(ns/1_000_000_000, 10)
	}
	return strconv.FormatInt(-ns, 10)
}

// Nanos is the other way round.
func Nanos(field, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case field[:1] != "p" || err != nil:
		return value
	case n > 0:
		n *= -1_000_000_000
	}
	return strconv.FormatInt(-n, 10)
}

// Letter is the other way round to Field.
func Letter(name string) string {
	n, err := strconv.Atoi(name)
	if err != nil {
		return name
	}
	letter, cell := letters[n%len(letters):][:1], n/len(letters)
	if cell == 0 {
		return letter
	}
	return letter + strconv.Itoa(cell)
}

// translate returns the words of a command with its hash fields and values changed.
func translate(words []string, name func(string) string, value func(field, value string) string) []string {
	words = slices.Clone(words)
	step := 0
	if len(words) > 0 {
		step = map[string]int{"HSET": 2, "HDEL": 1}[words[0]]
	}
	for i := 2; step > 0 && i < len(words); i += step {
		field := words[i]
		words[i] = name(field)
		if step == 2 {
			words[i+1] = value(field, words[i+1])
		}
	}
	return words
}

// Stored returns a command as the server gets it.
func Stored(words []string) []string { return translate(words, Field, Value) }

// Readable returns a command of the server's as the tests write it.
func Readable(words []string) []string {
	return translate(words, Letter, func(field, value string) string { return Nanos(Letter(field), value) })
}
