package rules

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Found is the limit of a descriptor, and the key of its units. The zero Found has no limit.
type Found struct {
	*Limit
	Label string // of metrics
	Key   string // without the limiter's name
	Tag   string // that begins the key: keys with one tag are taken from together; "": alone
	// Holder takes a slot of a concurrency limit. It is the last entry's value, which isn't part of the key.
	Holder string
	Above  *Found  // the limit that a share is of, which is taken from, too; nil: no share
	Also   []Found // the other limits of the descriptor, if its rule has a list
	// Repeated is a header that the rule counts by and the request has several times: programs read the first one, the last one
	// or all of them, so a client could choose which limit counts.
	Repeated string
	Default  bool // the header of the limit has no number up to max, so requests_per_unit counts
}

// Descriptor is a list of keys and values that a request is matched by, MaxEntries at most.
type Descriptor = []*common.RateLimitDescriptor_Entry

const (
	MaxEntries = 32
	maxPeriod  = 100 * 365 * 24 * time.Hour // of a limit that a request brings
	maxKey     = 256                        // bytes of a key's hash tag, and of its rest: a longer one is replaced by its hash
)

// Match finds the limit of a descriptor: the rule at the depth of its last entry. At each level a rule with the value
// comes before a wildcard, and a wildcard before a rule without a value.
func (d *Domain) Match(entries Descriptor) (f Found) {
	var room [MaxEntries]*node
	path, at := room[:0], &d.node
	for _, e := range entries {
		if at = at.child(e.GetKey(), e.GetValue()); at == nil {
			return f
		}
		path = append(path, at)
	}
	for i, m := range at.limits {
		if one := d.found(m, at, entries, path); i == 0 {
			f = one
		} else {
			f.Also = append(f.Also, one)
		}
	}
	return f
}

// found is a limit of a descriptor, which the rule at the end of a path has.
func (d *Domain) found(m *Limit, at *node, entries Descriptor, path []*node) (f Found) {
	f.Limit, f.Label = m, m.Path
	if m.detailed || slices.ContainsFunc(path, func(n *node) bool { return n.valueToMetric }) {
		f.Label = d.label(entries, path, m.detailed) + strings.TrimPrefix(m.Path, at.path)
	}
	if m.Algorithm == Concurrency {
		last := len(entries) - 1
		f.Holder = shorten([]byte(entries[last].GetValue()))
		entries = append(slices.Clone(entries[:last]), &common.RateLimitDescriptor_Entry{Key: entries[last].GetKey()})
	}
	f.Key, f.Tag = d.key(entries[:m.depth], path)
	for of := &f; of.above != nil; of = of.Above {
		of.Above = &Found{Limit: of.above, Label: of.above.Path}
		of.Above.Key, of.Above.Tag = d.key(entries[:of.above.depth], path)
	}
	return f
}

// All returns the limits of the descriptor.
func (f Found) All() []Found { return append([]Found{f}, f.Also...) }

// Explain says which rule each entry of a descriptor meets, and which limits count. say describes one.
func (d *Domain) Explain(entries Descriptor, say func(Found) string) (lines []string) {
	at := &d.node
	for _, e := range entries {
		pair := e.GetKey() + "=" + e.GetValue()
		next := at.child(e.GetKey(), e.GetValue())
		if next == nil {
			known := slices.Sorted(maps.Keys(at.children))
			return append(lines, fmt.Sprintf("%s: no rule below %s, which has %d: %s", pair, at.path, len(known),
				strings.Join(known[:min(len(known), 20)], ", ")), "no limit")
		}
		lines, at = append(lines, pair+": rule "+next.path), next
	}
	if at.limits == nil {
		return append(lines, "no limit: this rule has no rate_limit, and only the rule of the last entry counts")
	}
	f := d.Match(entries)
	for _, one := range f.All() {
		lines = append(lines, "limit: "+say(one))
	}
	for above := f.Above; above != nil; above = above.Above {
		lines = append(lines, "and the limit around it: "+say(*above))
	}
	return lines
}

// Where names the rule of a limit, its place, and its key on the server, where prefix begins all keys.
func (f Found) Where(prefix string) string {
	if f.Unlimited {
		return fmt.Sprintf("%s at %s, unlimited", f.Label, f.Place)
	}
	return fmt.Sprintf("%s at %s, key %s%s:%s", f.Label, f.Place, prefix, f.Counter(), f.Key)
}

// Override is the limit that a request brings. It counts at the keys of fixed windows of the same unit.
func (d *Domain) Override(entries Descriptor, own *common.RateLimitDescriptor_RateLimitOverride) (f Found, err error) {
	unit := pb.RateLimitResponse_RateLimit_Unit(own.GetUnit())
	f.Limit = &Limit{Path: d.name + ".override", Units: int64(own.GetRequestsPerUnit()), Period: Periods[unit.String()], Charge: d.tag == tagNone,
		limitLevel: limitLevel{Algorithm: FixedWindow, OnFailure: FailOpen},
		Reply:      &pb.RateLimitResponse_RateLimit{RequestsPerUnit: own.GetRequestsPerUnit(), Unit: unit}}
	if of := own.GetUnitMultiplier(); of != nil {
		f.Reply.UnitMultiplier = of
		f.Period = time.Duration(min(float64(f.Period)*float64(of.GetValue()), 2*float64(maxPeriod)))
	}
	if f.Period <= 0 || f.Period > maxPeriod {
		return f, fmt.Errorf("a limit of the request has the unit %s, times %v", unit, own.GetUnitMultiplier())
	}
	f.Label = f.Path
	if f.Key, f.Tag = d.key(entries, nil); own.GetUnitMultiplier() != nil {
		f.Key, f.own = f.Key+"|"+f.Period.String(), true
	}
	return f, nil
}

// child returns the rule of an entry.
func (n *node) child(key, value string) *node {
	composite := key + "_" + value
	if next := n.children[composite]; next != nil {
		return next
	}
	for _, w := range n.wildcards {
		if Pattern(w.composite).Match(composite) {
			return w
		}
	}
	return n.children[key]
}

// Pattern is a text in which each star is any text.
type Pattern string

// Match says whether a text matches. It takes the first place where a part fits, because stars take all that is between.
func (p Pattern) Match(text string) bool {
	part, rest, more := strings.Cut(string(p), "*")
	if !more {
		return text == part
	}
	text, fits := strings.CutPrefix(text, part)
	for fits {
		if part, rest, more = strings.Cut(rest, "*"); !more {
			return strings.HasSuffix(text, part)
		}
		_, text, fits = strings.Cut(text, part)
	}
	return false
}

// key returns the key of the units of some entries, and its hash tag, or "" if it has none. An entry whose rule shares its
// threshold has the rule's pattern in place of its value. The path is that of the rules, or nil.
func (d *Domain) key(entries Descriptor, path []*node) (key, tag string) {
	var room [maxKey]byte
	part := append(room[:0], escapes.Replace(d.name)...)
	endTag := func() {
		tag = "{" + shorten(part) + "}"
		part = part[:0]
	}
	if d.tag == tagDomain {
		endTag()
	}
	for i, e := range entries {
		value := e.GetValue()
		if path != nil && path[i].shared {
			value = strings.TrimPrefix(path[i].composite, e.GetKey()+"_")
		}
		part = append(append(part, '|'), escapes.Replace(e.GetKey())...)
		part = append(append(part, '='), escapes.Replace(value)...)
		if i == 0 && d.tag == tagDescriptor {
			endTag()
		}
	}
	return tag + shorten(part), tag
}

// escapes keeps two descriptors from having one key, and a value from making a hash tag.
var escapes = strings.NewReplacer("%", "%25", "|", "%7C", "=", "%3D", "{", "%7B", "}", "%7D")

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
func (d *Domain) label(entries Descriptor, path []*node, detailed bool) string {
	label := d.name
	for i, n := range path {
		part, value := entries[i].GetKey(), entries[i].GetValue()
		switch {
		case value != "" && (detailed || n.valueToMetric) && !n.shared:
			part += "_" + shorten([]byte(value)) // a client may have chosen it
		case n.shared || !detailed:
			part = n.composite
		}
		label += "." + part
	}
	return label
}
