package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"
)

// rules are those of all files together. They do not change.
type rules struct {
	domains  map[string]*domain
	http     map[string]*httpRules // by domain
	limits   []*limit              // of all rules, by path
	warnings []string              // of what has no effect
}

// domain is the rules of one domain.
type domain struct {
	node
	name string
	tag  tagging
}

// tagging says which keys of a domain get one hash tag. Requests take from all limits with one tag, or from none.
type tagging string

const (
	tagNone       tagging = "none"       // each limit decides alone, as envoyproxy/ratelimit has it
	tagDomain     tagging = "domain"     // all keys of the domain
	tagDescriptor tagging = "descriptor" // the keys of descriptors that have the same first entry
)

// node is a descriptor of a file. Its children are found by key, or by key and value with an underscore between them.
type node struct {
	children      map[string]*node
	wildcards     []string // keys of children that end with a star, in the order of the files
	limit         *limit   // nil: none
	path          string
	pattern       string // of share_threshold: the composite key with its star
	valueToMetric bool
}

// limit is the limit of a rule.
type limit struct {
	limitLevel
	path     string // the rule, as metrics and errors name it
	place    string // file and line
	units    int64
	replaces []string

	shadow, quota, detailed bool

	period time.Duration
	hold   time.Duration // of a slot
	charge bool          // hits that are refused count, too
	looked atomic.Bool   // a request has looked, with 0 hits
	warned atomic.Bool   // the log has said that reported hits are lost
	reply  *pb.RateLimitResponse_RateLimit
	bound  limiter // on the server
	local  limiter // in this process; nil if the limit came with a request
}

type algorithm string

const (
	fixedWindow   algorithm = "fixed_window"
	slidingWindow algorithm = "sliding_window"
	gcra          algorithm = "gcra"
	concurrency   algorithm = "concurrency"
)

// failure names the decision while the server is away.
type failure string

const (
	failOpen   failure = "open"
	failClosed failure = "closed"
	failLocal  failure = "local" // this process counts for itself
)

// A file has at most this many levels of descriptors, and all files together this many rules: an alias may refer to a part
// of the file that holds the alias.
const (
	maxDepth = 32
	maxRules = 1_000_000
)

// parse reads all files. An error names file, line and rule.
func parse(files []file, merge bool) (r *rules, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case mistake:
			r, err = nil, e.error
		default:
			panic(e)
		}
	}()
	l := &loader{rules: &rules{domains: map[string]*domain{}, http: map[string]*httpRules{}}}
	for _, f := range files {
		l.file = f.name
		l.load(f.text, merge)
	}
	slices.SortFunc(l.limits, func(a, b *limit) int { return strings.Compare(a.path, b.path) })
	return l.rules, nil
}

func (l *loader) load(text string, merge bool) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		panic(mistake{fmt.Errorf("%s: %w", l.file, err)})
	}
	if len(document.Content) == 0 {
		l.fail(&document, "", "the file is empty: it needs a domain")
	}
	root := document.Content[0]
	f := decode[domainLevel](l, root, "")
	d, tag := l.domains[f.Domain], cmp.Or(f.HashTag, tagNone)
	switch {
	case f.Domain == "":
		l.fail(root, "", "the file has no domain: write 'domain: name'")
	case d == nil:
		d = &domain{name: f.Domain, tag: tag, node: node{children: map[string]*node{}, path: f.Domain}}
		l.domains[f.Domain] = d
	case !merge:
		l.fail(root, "", "the domain %q is in another file, too: set MERGE_DOMAIN_CONFIG=true to merge them", f.Domain)
	case tag != d.tag:
		l.fail(root, "", "the hash_tag is %s, and %s in another file of the domain", tag, d.tag)
	}
	l.loadDescriptors(&d.node, f.Descriptors, 1, d.tag)
	if given(&f.HTTP) {
		l.loadHTTP(d, &f.HTTP)
	}
}

// composite is how a descriptor is found.
func (d *descriptorLevel) composite() string {
	if d.Value == "" {
		return d.Key
	}
	return d.Key + "_" + d.Value
}

func (l *loader) loadDescriptors(parent *node, list []yaml.Node, depth int, tag tagging) {
	for i := range list {
		at := &list[i]
		if l.count++; depth > maxDepth || l.count > maxRules {
			l.fail(at, parent.path, "more than %d levels or %d rules", maxDepth, maxRules)
		}
		var named descriptorLevel // though it may have mistakes
		_ = at.Decode(&named)
		composite := named.composite()
		n := &node{children: map[string]*node{}, path: parent.path + "." + composite}
		f := decode[descriptorLevel](l, at, n.path)
		n.valueToMetric = f.ValueToMetric
		wildcard := strings.HasSuffix(composite, "*")
		if strings.Contains(strings.TrimSuffix(f.Value, "*"), "*") {
			l.warn(at, n.path, "a star is a wildcard only at the end of a value: this one is an ordinary character")
		}
		switch {
		case f.Key == "":
			l.fail(at, parent.path, "a descriptor has no key")
		case parent.children[composite] != nil:
			l.fail(at, n.path, "this key and value appear twice")
		case f.ShareThreshold && !wildcard:
			l.fail(at, n.path, "share_threshold needs a value that ends with '*'")
		case f.ShareThreshold:
			n.pattern = composite
		}
		if wildcard {
			parent.wildcards = append(parent.wildcards, composite)
		}
		if given(&f.RateLimit) {
			n.limit = l.loadLimit(&f.RateLimit, n.path, tag)
			n.limit.shadow, n.limit.quota, n.limit.detailed = f.ShadowMode, f.QuotaMode, f.DetailedMetric
		}
		parent.children[composite] = n
		l.loadDescriptors(n, f.Descriptors, depth+1, tag)
	}
}

// periods of the units. A month has 30 days and a year 365, as envoyproxy/ratelimit has it: windows are counted from 1970.
var periods = map[string]time.Duration{
	"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour, "WEEK": 7 * 24 * time.Hour,
	"MONTH": 30 * 24 * time.Hour, "YEAR": 365 * 24 * time.Hour,
}

func (l *loader) loadLimit(at *yaml.Node, rule string, tag tagging) *limit {
	m := &limit{limitLevel: decode[limitLevel](l, at, rule), path: rule, place: l.place(at)}
	unit := strings.ToUpper(m.Unit)
	m.period = periods[unit]
	if wrong := m.mistake(m.period, tag); wrong != "" {
		l.fail(at, rule, "%s", wrong)
	}
	for i := range m.Replaces {
		other := decode[replacesLevel](l, &m.Replaces[i], rule).Name
		if other == "" || other == m.Name {
			l.fail(&m.Replaces[i], rule, "replaces needs the name of another rule, not %q", other)
		}
		m.replaces = append(m.replaces, other)
	}
	m.hold = or(m.Hold, time.Minute)
	if m.units = int64(m.RequestsPerUnit); m.Concurrency != nil {
		m.Algorithm, m.units = concurrency, int64(*m.Concurrency)
	}
	m.Algorithm, m.OnFailure = cmp.Or(m.Algorithm, fixedWindow), cmp.Or(m.OnFailure, failOpen)
	m.charge = m.Excess == "charge" || m.Excess == "" && m.Algorithm == fixedWindow && tag == tagNone && !m.Late
	m.reply = &pb.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(m.units), Name: m.Name,
		Unit: pb.RateLimitResponse_RateLimit_Unit(pb.RateLimitResponse_RateLimit_Unit_value[unit])}
	l.limits = append(l.limits, m)
	return m
}

// mistake says what does not fit together.
func (m *limitLevel) mistake(unit time.Duration, tag tagging) string {
	slots, charge := m.Concurrency != nil, m.Excess == "charge"
	switch {
	case slots && (m.Unit != "" || m.RequestsPerUnit > 0 || m.Algorithm != "" || m.Unlimited):
		return "concurrency is used alone or with hold: it has no unit, requests_per_unit or algorithm"
	case slots && *m.Concurrency == 0:
		return "concurrency is at least 1"
	case m.Unlimited && unit > 0:
		return "a rule that is unlimited has no unit"
	case !slots && !m.Unlimited && unit == 0:
		return "invalid unit '" + m.Unit + "': second, minute, hour, day, week, month or year"
	case (m.Burst != nil || m.Lockout != nil) && m.Algorithm != gcra:
		return "burst and lockout need 'algorithm: gcra'"
	case or(m.Burst, 1) == 0:
		return "burst is at least 1"
	case m.Hold != nil && !slots:
		return "hold needs concurrency"
	case !fits(m.Lockout) || !fits(m.Hold):
		return "lockout and hold are times between 1ms and 10 years: write 90s, 15m or 1h30m"
	case charge && (slots || m.Lockout != nil || tag != tagNone):
		return "'excess: charge' cannot be combined with concurrency, a lockout or a hash_tag"
	case m.Lockout != nil && tag != tagNone:
		return "a lockout cannot be combined with a hash_tag"
	case m.Late && (slots || m.Unlimited || m.Lockout != nil || m.Excess != ""):
		return "'late: true' cannot be combined with concurrency, unlimited, a lockout or excess: late hits are always charged"
	}
	return ""
}

// fits says whether the server takes a time.
func fits(d *time.Duration) bool {
	return d == nil || *d >= time.Millisecond && *d%time.Millisecond == 0 && *d <= 10*365*24*time.Hour
}

func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
