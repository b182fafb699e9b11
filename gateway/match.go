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
	tag   string // keys with one tag are taken from together; "": alone
	// holder takes a slot of a concurrency limit. It is the last entry's value, which isn't part of the key.
	holder string
}

// A key may hold this many bytes as they are. The rest of a longer one is replaced by its hash.
const maxKey = 256

// escapes keeps two descriptors from having one key, and a value from making a hash tag.
var escapes = strings.NewReplacer("%", "%25", "|", "%7C", "=", "%3D", "{", "%7B", "}", "%7D")

func appendEscaped(b []byte, text string) []byte {
	if strings.ContainsAny(text, "%|={}") {
		text = escapes.Replace(text)
	}
	return append(b, text...)
}

// match finds the limit of a descriptor: the rule at the depth of its last entry. At each level a rule with the value
// comes before a wildcard, and a wildcard before a rule without a value.
func (d *domain) match(entries []*common.RateLimitDescriptor_Entry) (f found) {
	var room [maxKey]byte
	key := d.beginKey(room[:0], entries)
	at, special := &d.node, false
	for i, e := range entries {
		next, wildcard := at.child(e.GetKey(), e.GetValue())
		if next == nil {
			return f
		}
		value := e.GetValue()
		if wildcard && next.pattern != "" {
			value = strings.TrimPrefix(next.pattern, e.GetKey()+"_")
		}
		key = append(appendEscaped(append(key, '|'), e.GetKey()), '=')
		if last := i == len(entries)-1; last && next.limit != nil && next.limit.algorithm == concurrency {
			f.holder = shorten([]byte(e.GetValue()))
		} else {
			key = appendEscaped(key, value)
		}
		special = special || next.valueToMetric
		if i == len(entries)-1 && next.limit != nil {
			f.limit, f.label = next.limit, next.limit.path
			f.key, f.tag = shorten(key), d.tagOf(key)
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
	key := d.beginKey(nil, entries)
	for _, e := range entries {
		key = append(appendEscaped(append(key, '|'), e.GetKey()), '=')
		key = appendEscaped(key, e.GetValue())
	}
	return found{key: shorten(key), tag: d.tagOf(key)}
}

// child returns the rule of an entry, and whether a wildcard has found it.
func (n *node) child(key, value string) (next *node, wildcard bool) {
	var room [maxKey]byte
	composite := append(append(append(room[:0], key...), '_'), value...)
	if next := n.children[string(composite)]; next != nil {
		return next, false
	}
	for _, w := range n.wildcards {
		if strings.HasPrefix(string(composite), w[:len(w)-1]) {
			return n.children[w], true
		}
	}
	return n.children[key], false
}

// beginKey writes the domain, and the hash tag if the domain has one.
func (d *domain) beginKey(key []byte, entries []*common.RateLimitDescriptor_Entry) []byte {
	if d.tag == tagNone {
		return appendEscaped(key, d.name)
	}
	key = appendEscaped(append(key, '{'), d.name)
	if d.tag == tagDescriptor && len(entries) > 0 {
		key = append(appendEscaped(append(key, '|'), entries[0].GetKey()), '=')
		key = appendEscaped(key, entries[0].GetValue())
	}
	return append(key, '}')
}

func (d *domain) tagOf(key []byte) string {
	if d.tag == tagNone {
		return ""
	}
	tag, _, _ := strings.Cut(string(key), "}")
	return tag
}

// shorten replaces a long key by its hash. The hash tag stays, unless it is long, too.
func shorten(key []byte) string {
	if len(key) <= maxKey {
		return string(key)
	}
	sum := sha256.Sum256(key)
	hash := "#" + base64.RawURLEncoding.EncodeToString(sum[:])
	tag, _, tagged := strings.Cut(string(key), "}")
	if !tagged {
		return hash
	}
	if len(tag) > maxKey/2 {
		sum = sha256.Sum256([]byte(tag))
		tag = "{#" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return tag + "}" + hash
}

// label names the rule in metrics if its name depends on the values: with detailed_metric it holds all values, else those
// that value_to_metric asks for. A value that shares its threshold with others is named by their pattern.
func (d *domain) label(entries []*common.RateLimitDescriptor_Entry, detailed bool) string {
	label, at := d.name, &d.node
	for _, e := range entries {
		next, wildcard := at.child(e.GetKey(), e.GetValue())
		part := e.GetKey()
		switch {
		case next == nil:
		case wildcard && next.pattern != "":
			part = next.pattern
		case e.GetValue() != "" && (detailed || next.valueToMetric):
			part += "_" + e.GetValue()
		case !detailed:
			part = next.path[len(at.path)+1:]
		}
		label += "." + part
		if next != nil {
			at = next
		}
	}
	return label
}
