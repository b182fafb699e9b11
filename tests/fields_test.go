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

// letterOf is the other way round.
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

// renameFields returns the words of a command with the names of its hash fields changed.
func renameFields(words []string, rename func(string) string) []string {
	words = slices.Clone(words)
	step := 0
	if len(words) > 0 {
		step = map[string]int{"HSET": 2, "HDEL": 1}[words[0]]
	}
	for i := 2; step > 0 && i < len(words); i += step {
		words[i] = rename(words[i])
	}
	return words
}
