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

// withLetters writes the fields of an effect with letters.
func withLetters(words []string) []string {
	words = slices.Clone(words)
	step := map[string]int{"HSET": 2, "HDEL": 1}[words[0]]
	for i := 2; step > 0 && i < len(words); i += step {
		words[i] = letterOf(words[i])
		if step == 2 {
			words[i+1] = nanosOf(words[i], words[i+1])
		}
	}
	return words
}

// putHash makes key a hash of these fields and values.
func putHash(h *fakehost.Host, key string, fieldsAndValues ...string) {
	h.PutHash(key)
	for i := 0; i < len(fieldsAndValues); i += 2 {
		putField(h, key, fieldsAndValues[i], fieldsAndValues[i+1])
	}
}

func putField(h *fakehost.Host, key, field, value string) {
	h.PutField(key, fieldOf(field), valueOf(field, value))
}

// effects returns the replicated commands as the tests write them.
func effects(h *fakehost.Host) string {
	var all []string
	for _, words := range h.EffectWords() {
		all = append(all, strings.Join(withLetters(words), " "))
	}
	return relative(h, strings.Join(all, "; "))
}
