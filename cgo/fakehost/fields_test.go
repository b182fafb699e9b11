package fakehost_test

import (
	"slices"
	"strconv"
	"strings"

	"gothrottle/cgo/fakehost"
)

// A field is written here by a letter for what it holds, and the number of its cell unless
// that is the first: t the TAT, p the period, n the rest of the TAT, c the count.
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

// withLetters writes the fields of an effect with letters.
func withLetters(words []string) []string {
	words = slices.Clone(words)
	step := map[string]int{"HSET": 2, "HDEL": 1}[words[0]]
	for i := 2; step > 0 && i < len(words); i += step {
		words[i] = letterOf(words[i])
	}
	return words
}

// putHash makes key a hash of these fields and values.
func putHash(h *fakehost.Host, key string, fieldsAndValues ...string) {
	for i := 0; i < len(fieldsAndValues); i += 2 {
		fieldsAndValues[i] = fieldOf(fieldsAndValues[i])
	}
	h.PutHash(key, fieldsAndValues...)
}

func putField(h *fakehost.Host, key, field, value string) { h.PutField(key, fieldOf(field), value) }

// effects returns the replicated commands as the tests write them.
func effects(h *fakehost.Host) string {
	var all []string
	for _, words := range h.EffectWords() {
		all = append(all, strings.Join(withLetters(words), " "))
	}
	return relative(h, strings.Join(all, "; "))
}
