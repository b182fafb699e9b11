package cgo_test

import (
	"strings"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands/hashtext"
)

// putHash makes key a hash of these fields and values.
func putHash(h *fakehost.Host, key string, fieldsAndValues ...string) {
	h.PutHash(key)
	for i := 0; i < len(fieldsAndValues); i += 2 {
		putField(h, key, fieldsAndValues[i], fieldsAndValues[i+1])
	}
}

func putField(h *fakehost.Host, key, field, value string) {
	h.PutField(key, hashtext.Field(field), hashtext.Value(field, value))
}

// effects returns the replicated commands as the tests write them.
func effects(h *fakehost.Host) string {
	var all []string
	for _, words := range h.EffectWords() {
		all = append(all, strings.Join(hashtext.Readable(words), " "))
	}
	return relative(h, strings.Join(all, "; "))
}
