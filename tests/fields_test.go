package tests

import (
	"slices"
	"strconv"
	"strings"
)

// The fields of a hash are numbers. The tests write them by a letter for what they hold, and
// the number of the cell unless that is the first: t the TAT, p the period, n the rest of
// the TAT, c the count.
const fieldLetters = "tpnc"

// fieldOf returns the name of a field that is written so, and any other text as it is.
func fieldOf(text string) string {
	if text == "" || !strings.Contains(fieldLetters, text[:1]) {
		return text
	}
	cell, err := strconv.Atoi("0" + text[1:])
	if err != nil {
		return text
	}
	return strconv.Itoa(len(fieldLetters)*cell + strings.Index(fieldLetters, text[:1]))
}

// valueOf returns the value of a field as it is stored: a period of whole seconds as such,
// another one as ns with the sign turned. The tests write all in ns.
func valueOf(letters, text string) string {
	ns, err := strconv.ParseInt(text, 10, 64)
	switch {
	case letters[:1] != "p" || err != nil || ns <= 0:
		return text
	case ns%1_000_000_000 == 0:
		return strconv.FormatInt(ns/1_000_000_000, 10)
	}
	return strconv.FormatInt(-ns, 10)
}

// nanosOf is the other way round.
func nanosOf(letters, stored string) string {
	n, err := strconv.ParseInt(stored, 10, 64)
	switch {
	case letters[:1] != "p" || err != nil:
		return stored
	case n > 0:
		n *= -1_000_000_000
	}
	return strconv.FormatInt(-n, 10)
}

// letterOf is the other way round to fieldOf.
func letterOf(name string) string {
	n, err := strconv.Atoi(name)
	if err != nil {
		return name
	}
	letter, cell := fieldLetters[n%len(fieldLetters):][:1], n/len(fieldLetters)
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

// stored returns a command of the tests with the fields as the server has them, and
// readable one of the server's as the tests write it.
func stored(words []string) []string { return translate(words, fieldOf, valueOf) }
func readable(words []string) []string {
	return translate(words, letterOf, func(field, value string) string { return nanosOf(letterOf(field), value) })
}
