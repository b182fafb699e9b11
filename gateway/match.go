package main

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

// found is the limit of a descriptor, and the key of its units. The zero found has no limit.
type found struct {
	limit *limit
	label string // of metrics
	key   string // without the limiter's name
	tag   string // that begins the key: keys with one tag are taken from together; "": alone
	// holder takes a slot of a concurrency limit. It is the last entry's value, which isn't part of the key.
	holder string
}

// The hash tag of a key and its rest may hold this many bytes each. A longer one is replaced by its hash.
const maxKey = 256

// escapes keeps two descriptors from having one key, and a value from making a hash tag.
var escapes = strings.NewReplacer("%", "%25", "|", "%7C", "=", "%3D", "{", "%7B", "}", "%7D")

func appendEntry(key []byte, name, value string) []byte {
	return append(append(append(append(key, '|'), escapes.Replace(name)...), '='), escapes.Replace(value)...)
}

// match finds the limit of a descriptor: the rule at the depth of its last entry. At each level a rule with the value
// comes before a wildcard, and a wildcard before a rule without a value.
func (d *domain) match(entries []*common.RateLimitDescriptor_Entry) (f found) {
	var room [maxKey]byte
	key := d.beginKey(room[:0])
	at, special := &d.node, false
	for i, e := range entries {
		next := at.child(e.GetKey(), e.GetValue())
		if next == nil {
			return f
		}
		value := e.GetValue()
		if next.pattern != "" {
			value = strings.TrimPrefix(next.pattern, e.GetKey()+"_")
		}
		last := i == len(entries)-1 && next.limit != nil
		if last && next.limit.Algorithm == concurrency {
			f.holder, value = shorten([]byte(e.GetValue())), ""
		}
		key = appendEntry(key, e.GetKey(), value)
		special = special || next.valueToMetric
		if last {
			f.limit, f.label = next.limit, next.limit.path
			f.tag = d.tagOf(entries)
			f.key = f.tag + shorten(key)
		}
		if at = next; len(at.children) == 0 {
			break
		}
	}
	if f.limit != nil && (special || f.limit.detailed) {
		f.label = d.label(entries, f.limit.detailed)
	}
	return f
}

// keyOf is the key of a descriptor whose limit comes with the request.
func (d *domain) keyOf(entries []*common.RateLimitDescriptor_Entry) found {
	tag := d.tagOf(entries)
	key := d.beginKey(nil)
	for _, e := range entries {
		key = appendEntry(key, e.GetKey(), e.GetValue())
	}
	return found{key: tag + shorten(key), tag: tag}
}

// child returns the rule of an entry.
func (n *node) child(key, value string) *node {
	var room [maxKey]byte
	composite := append(append(append(room[:0], key...), '_'), value...)
	if next := n.children[string(composite)]; next != nil {
		return next
	}
	for _, w := range n.wildcards {
		if strings.HasPrefix(string(composite), w[:len(w)-1]) {
			return n.children[w]
		}
	}
	return n.children[key]
}

// tagOf returns the hash tag of a descriptor's keys, or "" if the domain has none.
func (d *domain) tagOf(entries []*common.RateLimitDescriptor_Entry) string {
	if d.tag == tagNone {
		return ""
	}
	tag := []byte(escapes.Replace(d.name))
	if d.tag == tagDescriptor && len(entries) > 0 {
		tag = appendEntry(tag, entries[0].GetKey(), entries[0].GetValue())
	}
	return "{" + shorten(tag) + "}"
}

// beginKey writes the domain, unless the hash tag has it.
func (d *domain) beginKey(key []byte) []byte {
	if d.tag == tagNone {
		key = append(key, escapes.Replace(d.name)...)
	}
	return key
}

// shorten replaces a long part of a key by its hash.
func shorten(part []byte) string {
	if len(part) <= maxKey {
		return string(part)
	}
	sum := sha256.Sum256(part)
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// label names the rule in metrics if its name depends on the values: with detailed_metric it holds all values, else those
// that value_to_metric asks for. A value that shares its threshold with others is named by their pattern.
func (d *domain) label(entries []*common.RateLimitDescriptor_Entry, detailed bool) string {
	label, at := d.name, &d.node
	for _, e := range entries {
		next := at.child(e.GetKey(), e.GetValue())
		part := e.GetKey()
		switch {
		case next.pattern != "":
			part = next.pattern
		case e.GetValue() != "" && (detailed || next.valueToMetric):
			part += "_" + e.GetValue()
		case !detailed:
			part = next.path[len(at.path)+1:]
		}
		label += "." + part
		at = next
	}
	return label
}
