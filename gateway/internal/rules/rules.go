package rules

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Set is the rules of all files together. It does not change.
type Set struct {
	Domains  map[string]*Domain
	HTTP     map[string]*HTTP // by domain
	Limits   []*Limit         // of all rules, by path
	Warnings []string         // of what has no effect
	Hash     string           // of the texts of the files, in their order
	Version  string           // of the management server; "" for files
	Loaded   time.Time        // when it was parsed
}

// Domain is the rules of one domain.
type Domain struct {
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
	wildcards     []*node // the children whose composite has a star, in the order of the files
	limits        []*Limit
	above         *Limit // its only limit, or that of the nearest descriptor around it; nil: none
	path          string
	composite     string // the end of path: how it is found
	shared        bool   // all values of the composite's star share one threshold
	valueToMetric bool
}

// Limit is the limit of a rule, with the keys of its file.
type Limit struct {
	limitLevel
	Path     string // the rule, as metrics and errors name it
	Place    string // file and line
	Units    int64
	Period   time.Duration // of slots: after it a slot lapses
	Replaced []string      // the names of rules that this one replaces
	Charge   bool          // hits that are refused count, too
	Late     bool          // reported hits are charged, past the limit if need be
	Cost     *costLevel    // of http rules whose costs are known after the request: the header of /settle that has them; else nil
	Reply    *pb.RateLimitResponse_RateLimit
	Metadata map[string]any
	Share    int    // the weight of a tenant of the limit above; 0: none
	above    *Limit // of a share
	depth    int    // of the entries that make the key
	own      bool   // a request brought it, with a period of its own

	Shadow, Quota, detailed bool
}

// Algorithm says how a limit counts. Concurrency has slots, one for each holder.
type Algorithm string

const (
	FixedWindow   Algorithm = "fixed_window"
	SlidingWindow Algorithm = "sliding_window"
	GCRA          Algorithm = "gcra"
	Concurrency   Algorithm = "concurrency"
)

// Failure names the decision while the server is unavailable.
type Failure string

const (
	FailOpen   Failure = "open"
	FailClosed Failure = "closed"
	FailLocal  Failure = "local" // this process counts for itself
)

// A file has at most this many levels of descriptors, and all files together this many rules: an alias may refer to a part
// of the file that holds the alias.
const (
	maxDepth  = 32
	maxRules  = 1_000_000
	maxWeight = 1000 // of a share

	maxMistakes = 20 // that are looked for
)

// Options of Parse.
type Options struct {
	Merge     bool      // several files may have one domain
	Algorithm Algorithm // of rules that name none; "": FixedWindow
	Late      []Pattern // paths of rules of descriptors whose hits are late unless they say otherwise
}

// late says whether the hits of a rule that doesn't say are late.
func (o *Options) late(rule string) bool {
	return slices.ContainsFunc(o.Late, func(p Pattern) bool { return p.Match(rule) })
}

// Parse reads all files. An error names file, line and rule of each mistake, up to maxMistakes, in a line of its own.
func Parse(files []File, o Options) (*Set, error) {
	l := &loader{Options: o, Set: &Set{Domains: map[string]*Domain{}, HTTP: map[string]*HTTP{}, Loaded: time.Now()}}
	hash := sha256.New()
	for _, f := range files {
		_, _ = fmt.Fprint(hash, len(f.Text), " ", f.Text)
		l.file = f.Name
		l.try(func() { l.load(f.Text) })
	}
	if len(l.mistakes) > 0 {
		return nil, errors.Join(l.mistakes...)
	}
	l.Hash = fmt.Sprintf("%x", hash.Sum(nil)[:6])
	slices.SortFunc(l.Limits, func(a, b *Limit) int { return strings.Compare(a.Path, b.Path) })
	return l.Set, nil
}

func (l *loader) load(text string) {
	var document yaml.Node
	all := yaml.NewDecoder(strings.NewReader(text))
	err := all.Decode(&document)
	for err == nil {
		var more yaml.Node
		if err = all.Decode(&more); err == nil && given(more.Content[0]) {
			l.fail(more.Content[0], "", "a file has one domain: put what follows this '---' into another file")
		}
	}
	if !errors.Is(err, io.EOF) {
		panic(mistake{fmt.Errorf("%s: %w", l.file, err)})
	}
	if len(document.Content) == 0 {
		l.fail(&document, "", "the file is empty: it needs a domain")
	}
	root := document.Content[0]
	f := decode[domainLevel](l, root, "")
	d, tag := l.Domains[f.Domain], cmp.Or(f.HashTag, tagNone)
	switch {
	case f.Domain == "":
		l.fail(root, "", "the file has no domain: write 'domain: name'")
	case d == nil:
		d = &Domain{name: f.Domain, tag: tag, node: node{children: map[string]*node{}, path: f.Domain}}
		l.Domains[f.Domain] = d
	case !l.Merge:
		l.fail(root, "", "the domain %q is in another file, too: set MERGE_DOMAIN_CONFIG=true to merge them", f.Domain)
	case tag != d.tag:
		l.fail(root, "", "the hash_tag is %s, and %s in another file of the domain", tag, d.tag)
	}
	l.loadDescriptors(&d.node, f.Descriptors, 1, d.tag)
	if given(&f.HTTP) {
		l.loadHTTP(d, &f.HTTP)
	}
}

func (l *loader) loadDescriptors(parent *node, list []yaml.Node, depth int, tag tagging) {
	for i := range list {
		l.try(func() { l.loadDescriptor(parent, &list[i], depth, tag) })
	}
}

func (l *loader) loadDescriptor(parent *node, at *yaml.Node, depth int, tag tagging) {
	if l.count++; depth > maxDepth || l.count > maxRules {
		l.fail(at, parent.path, "more than %d levels or %d rules", maxDepth, maxRules)
	}
	var named descriptorLevel // though it may have mistakes
	_ = at.Decode(&named)
	composite := named.Key
	if named.Value != "" {
		composite += "_" + named.Value
	}
	n := &node{children: map[string]*node{}, path: parent.path + "." + composite, composite: composite, above: parent.above}
	f := decode[descriptorLevel](l, at, n.path)
	n.shared, n.valueToMetric = f.ShareThreshold, f.ValueToMetric
	wild := strings.Contains(composite, "*")
	_, wrong := structpb.NewStruct(f.Metadata)
	switch {
	case wrong != nil:
		l.fail(at, n.path, "metadata: %s", wrong)
	case f.Key == "":
		l.fail(at, parent.path, "a descriptor has no key")
	case parent.children[composite] != nil:
		l.fail(at, n.path, "this key and value appear twice")
	case f.ShareThreshold && !wild:
		l.fail(at, n.path, "share_threshold needs a value with a '*'")
	}
	if wild {
		parent.wildcards = append(parent.wildcards, n)
	}
	switch {
	case f.Share != nil || f.Reserve != nil:
		n.limits = []*Limit{l.loadNested(at, &f, n.path, parent.above, tag)}
	case given(&f.RateLimit):
		n.limits = l.loadLimits(&f.RateLimit, n.path, tag, l.late(n.path))
	}
	for _, m := range n.limits {
		m.Shadow, m.Quota, m.detailed = m.Shadow || f.ShadowMode, f.QuotaMode, f.DetailedMetric
		m.Metadata = f.Metadata
		if f.Reserve == nil { // else the key is that of the limit around it
			m.depth = depth
		}
		if n.above = nil; len(n.limits) == 1 {
			n.above = m
		}
		if m.Header != "" {
			l.fail(at, m.Path, "a header is for http rules: Envoy sends a limit of its own")
		}
	}
	parent.children[composite] = n
	l.loadDescriptors(n, f.Descriptors, depth+1, tag)
}

// loadLimits reads a limit, or a list of limits that all count: each has its name at the end of its path.
func (l *loader) loadLimits(at *yaml.Node, rule string, tag tagging, late bool) (all []*Limit) {
	list := resolve(at)
	if list.Kind != yaml.SequenceNode {
		return []*Limit{l.loadLimit(at, rule, tag, late)}
	}
	for _, one := range list.Content {
		var named limitLevel // though it may have mistakes
		_ = one.Decode(&named)
		m := l.loadLimit(one, rule+"."+named.Name, tag, late)
		switch {
		case m.Name == "" || slices.ContainsFunc(all, func(other *Limit) bool { return other.Name == m.Name }):
			l.fail(one, rule, "each limit of a list needs a name of its own")
		case m.Algorithm == Concurrency || m.Unlimited:
			l.fail(one, m.Path, "a limit of a list has no concurrency and is not unlimited")
		case slices.ContainsFunc(all, func(other *Limit) bool { return other.Counter() == m.Counter() }):
			l.fail(one, m.Path, "limits of one list differ in their unit or algorithm: these two would count at one key")
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		l.fail(at, rule, "the list of limits is empty")
	}
	return all
}

// loadLimit reads a limit. late is what it is if it doesn't say.
func (l *loader) loadLimit(at *yaml.Node, rule string, tag tagging, late bool) *Limit {
	m := &Limit{limitLevel: decode[limitLevel](l, at, rule), Path: rule, Place: l.place(at)}
	if m.Concurrency == nil && !m.Unlimited {
		m.Algorithm = cmp.Or(m.Algorithm, l.Algorithm)
	}
	m.Late = or(m.LateHits, late && !m.neverLate())
	m.Period = periodOf(m.Unit)
	if wrong := m.mistake(m.Period, tag); wrong != "" {
		l.fail(at, rule, "%s", wrong)
	}
	for i := range m.Replaces {
		other := decode[replacesLevel](l, &m.Replaces[i], rule).Name
		if other == "" || other == m.Name {
			l.fail(&m.Replaces[i], rule, "replaces needs the name of another rule, not %q", other)
		}
		m.Replaced = append(m.Replaced, other)
	}
	if m.Units = int64(m.RequestsPerUnit); m.Concurrency != nil {
		m.Algorithm, m.Units, m.Period = Concurrency, int64(*m.Concurrency), or(m.Hold, time.Minute)
	}
	m.Algorithm, m.OnFailure = cmp.Or(m.Algorithm, FixedWindow), cmp.Or(m.OnFailure, FailOpen)
	m.Charge = m.Excess == "charge" || m.Excess == "" && m.Algorithm == FixedWindow && tag == tagNone && !m.Late
	m.Reply = m.reply(m.Name)
	l.Limits = append(l.Limits, m)
	return m
}

// mistake says what does not fit together: amounts, what only some algorithms have, and hits that are refused or come late.
func (m *limitLevel) mistake(unit time.Duration, tag tagging) string {
	slots, counts := m.Concurrency != nil, m.Unit != "" || m.RequestsPerUnit > 0 || m.Algorithm != "" || m.Header != ""
	calendar := cmp.Or(m.Algorithm, FixedWindow) == FixedWindow && slices.Contains([]string{"DAY", "MONTH"}, strings.ToUpper(m.Unit))
	locks, tagged, late, header := m.Lockout != nil, tag != tagNone, or(m.LateHits, false), m.Header != ""
	for _, one := range []struct {
		found bool
		text  string
	}{
		{slots && (counts || m.Unlimited), "concurrency is used alone or with hold: it has no unit, requests_per_unit or algorithm"},
		{or(m.Concurrency, 1) == 0, "concurrency is at least 1"},
		{m.Unlimited && unit > 0, "a rule that is unlimited has no unit"},
		{!slots && !m.Unlimited && (unit == 0 || !fits(&unit)), "invalid unit '" + m.Unit + "': second, minute, hour, day, week, month, year, or a time from 1ms to 10 years such as 15m, 36h or 90d"},
		{(m.Burst != nil || locks) && m.Algorithm != GCRA, "burst and lockout need 'algorithm: gcra'"},
		{or(m.Burst, 1) == 0, "burst is at least 1"},
		{m.StartsOn != 0 && (m.TimeZone.Location == nil || unit != Periods["MONTH"] || m.StartsOn < 0 || m.StartsOn > 31),
			"starts_on is 1 to 31, and needs a time_zone and the unit month"},
		{m.TimeZone.Location != nil && !calendar, "time_zone needs 'algorithm: fixed_window' and the unit day or month"},
		{header != (m.Max > 0) || header && !token.MatchString(m.Header), "header and max belong together: the header may bring another requests_per_unit, up to max"},
		{header && (m.Burst != nil || m.RequestsPerUnit > m.Max), "with a header, requests_per_unit is at most max, and there is no burst"},
		{m.Hold != nil && !slots, "hold needs concurrency"},
		{!fits(m.Lockout) || !fits(m.Hold), "lockout and hold are times between 1ms and 10 years: write 90s, 15m or 1h30m"},
		{m.Excess == "charge" && (slots || locks || tagged), "'excess: charge' cannot be combined with concurrency, a lockout or a hash_tag"},
		{locks && tagged, "a lockout cannot be combined with a hash_tag"},
		{late && m.neverLate(), "'late: true' cannot be combined with concurrency, unlimited, a lockout or excess: late hits are always charged"},
	} {
		if one.found {
			return one.text
		}
	}
	return ""
}

// neverLate says whether hits of the limit cannot be charged late.
func (m *limitLevel) neverLate() bool {
	return m.Concurrency != nil || m.Unlimited || m.Lockout != nil || m.Excess != ""
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
