package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"
)

// file is one file of rules.
type file struct{ name, text string }

// rules is what all files say together. It does not change.
type rules struct {
	domains  map[string]*domain
	limits   []*limit // of all rules, by path
	warnings []string // of what has no effect
}

// domain is the rules of one domain.
type domain struct {
	node
	name string
	tag  tagging
	http *httpRules // nil: no rules for /check
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
	path     string // the rule, as metrics and errors name it
	place    string // file and line
	units    int64
	unit     pb.RateLimitResponse_RateLimit_Unit
	name     string
	replaces []string

	unlimited, shadow, quota, detailed bool

	algorithm algorithm
	period    time.Duration
	burst     int64         // of gcra; 0: units
	lockout   time.Duration // of gcra; 0: none
	hold      time.Duration // of concurrency: when a slot lapses
	charge    bool          // hits that are refused count, too
	failure   failure
	reply     *pb.RateLimitResponse_RateLimit
	bound     any  // its limiter
	override  bool // the limit came with a request
}

type algorithm string

const (
	fixedWindow   algorithm = "fixed_window"
	slidingWindow algorithm = "sliding_window"
	gcra          algorithm = "gcra"
	concurrency   algorithm = "concurrency"
)

// failure says what a decision is while the server is away.
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

// The keys of each level. The first ones are those of envoyproxy/ratelimit.
var (
	domainKeys     = []string{"domain", "descriptors", "hash_tag", "http"}
	descriptorKeys = []string{"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold"}
	limitKeys      = []string{"unit", "requests_per_unit", "unlimited", "name", "replaces", "algorithm", "burst", "lockout", "concurrency", "hold", "excess", "on_failure"}
	replacesKeys   = []string{"name"}
	theirKeys      = slices.Concat(domainKeys[:2], descriptorKeys, limitKeys[:5])
)

// loader reads files into rules.
type loader struct {
	*rules
	file  string
	count int
}

// parse reads all files. An error names file, line and rule.
func parse(files []file, merge bool) (r *rules, err error) {
	defer func() {
		if e, ok := recover().(mistake); ok {
			r, err = nil, e
		} else if e := recover(); e != nil {
			panic(e)
		}
	}()
	l := &loader{rules: &rules{domains: map[string]*domain{}}}
	for _, f := range files {
		l.file = f.name
		l.load(f.text, merge)
	}
	slices.SortFunc(l.limits, func(a, b *limit) int { return strings.Compare(a.path, b.path) })
	return l.rules, nil
}

// mistake is what is wrong with a file.
type mistake struct{ text string }

func (m mistake) Error() string { return m.text }

// fail ends the reading. The rule may be empty.
func (l *loader) fail(at *yaml.Node, rule, format string, args ...any) {
	panic(mistake{l.place(at) + prefixed(rule) + fmt.Sprintf(format, args...)})
}

func (l *loader) place(at *yaml.Node) string { return fmt.Sprintf("%s:%d: ", l.file, max(at.Line, 1)) }

func prefixed(rule string) string {
	if rule == "" {
		return ""
	}
	return "rule " + rule + ": "
}

func (l *loader) load(text string, merge bool) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		panic(mistake{l.file + ": " + err.Error()})
	}
	if len(document.Content) == 0 {
		l.fail(&document, "", "the file is empty: it needs a domain")
	}
	root := document.Content[0]
	l.checkScalars(root, 0)
	f := l.fields(root, "", domainKeys)
	name := l.text(f["domain"])
	if name == "" {
		l.fail(root, "", "the file has no domain: write 'domain: name'")
	}
	d := l.domains[name]
	if d != nil && !merge {
		l.fail(f["domain"], "", "the domain %q is in another file, too: set MERGE_DOMAIN_CONFIG=true to merge them", name)
	}
	if d == nil {
		d = &domain{name: name, tag: tagNone, node: node{children: map[string]*node{}, path: name}}
		l.domains[name] = d
	}
	if at := f["hash_tag"]; at != nil {
		d.tag = oneOf(l, at, "", tagNone, tagDomain, tagDescriptor)
	}
	l.loadDescriptors(&d.node, f["descriptors"], 1, d.tag)
	if at := f["http"]; at != nil {
		l.loadHTTP(d, at)
	}
}

// checkScalars refuses numbers with a fraction, which envoyproxy/ratelimit refuses: as a value such a number may not be
// the text that was meant.
func (l *loader) checkScalars(at *yaml.Node, depth int) {
	if depth > 4*maxDepth {
		l.fail(at, "", "more than %d levels", maxDepth)
	}
	if at.Kind == yaml.ScalarNode && at.ShortTag() == "!!float" {
		l.fail(at, "", "%s is a number with a fraction: put a value in quotation marks", at.Value)
	}
	for _, n := range at.Content {
		l.checkScalars(n, depth+1)
	}
}

func resolve(at *yaml.Node) *yaml.Node {
	for at != nil && at.Kind == yaml.AliasNode {
		at = at.Alias
	}
	if at == nil || at.Kind == yaml.ScalarNode && at.ShortTag() == "!!null" {
		return nil
	}
	return at
}

// fields returns the values of a mapping. A key that is unknown or there twice is refused. A key of another level has no
// effect: envoyproxy/ratelimit ignores it, so it is a warning.
func (l *loader) fields(at *yaml.Node, rule string, keys []string) map[string]*yaml.Node {
	n := resolve(at)
	if n == nil || n.Kind != yaml.MappingNode {
		l.fail(at, rule, "this must be a mapping of keys to values, with the keys %s", strings.Join(keys, ", "))
	}
	fields, merged := map[string]*yaml.Node{}, map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		_, twice := fields[k.Value]
		switch {
		case k.ShortTag() == "!!merge":
			maps.Copy(merged, l.fields(v, rule, keys))
			continue
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			l.fail(k, rule, "the key %s isn't text", k.Value)
		case twice:
			l.fail(k, rule, "the key '%s' is there twice", k.Value)
		case !slices.Contains(keys, k.Value) && !slices.Contains(theirKeys, k.Value):
			l.fail(k, rule, "unknown key '%s': known here are %s", k.Value, strings.Join(keys, ", "))
		case !slices.Contains(keys, k.Value):
			l.warnings = append(l.warnings, l.place(k)+prefixed(rule)+fmt.Sprintf("'%s' has no effect here", k.Value))
		}
		fields[k.Value] = resolve(v)
	}
	for k, v := range merged {
		if _, own := fields[k]; !own {
			fields[k] = v
		}
	}
	return fields
}

// items returns the parts of a list; nil is empty.
func (l *loader) items(at *yaml.Node, rule string) []*yaml.Node {
	if at == nil {
		return nil
	}
	if at.Kind != yaml.SequenceNode {
		l.fail(at, rule, "this must be a list")
	}
	return at.Content
}

func (l *loader) text(at *yaml.Node) string {
	if at == nil {
		return ""
	}
	if at.Kind != yaml.ScalarNode {
		l.fail(at, "", "this must be a text")
	}
	return at.Value
}

// value reads a number, a bool or the like; nil is the zero value.
func value[T any](l *loader, at *yaml.Node, rule string) (v T) {
	if at != nil && at.Decode(&v) != nil {
		l.fail(at, rule, "%q isn't a %T", at.Value, v)
	}
	return v
}

// duration reads a time such as 90s or 15m, between 1 ms and 10 years.
func (l *loader) duration(at *yaml.Node, rule string) time.Duration {
	d, err := time.ParseDuration(l.text(at))
	if err != nil || d < time.Millisecond || d%time.Millisecond != 0 || d > 10*365*24*time.Hour {
		l.fail(at, rule, "%q isn't a time of at least 1ms: write 90s, 15m or 1h30m", at.Value)
	}
	return d
}

func oneOf[T ~string](l *loader, at *yaml.Node, rule string, words ...T) T {
	word := T(l.text(at))
	if !slices.Contains(words, word) {
		l.fail(at, rule, "%q is none of %v", word, words)
	}
	return word
}

// composite is the key and value of a descriptor that may have mistakes, to name it.
func composite(at *yaml.Node) string {
	var d struct{ Key, Value string }
	_ = at.Decode(&d)
	return strings.TrimSuffix(d.Key+"_"+d.Value, "_")
}

func (l *loader) loadDescriptors(parent *node, list *yaml.Node, depth int, tag tagging) {
	for _, at := range l.items(list, parent.path) {
		if l.count++; depth > maxDepth || l.count > maxRules {
			l.fail(at, parent.path, "more than %d levels or %d rules", maxDepth, maxRules)
		}
		f := l.fields(at, parent.path+"."+composite(at), descriptorKeys)
		if l.text(f["key"]) == "" {
			l.fail(at, parent.path, "a descriptor has no key")
		}
		composite := l.text(f["key"])
		if v := l.text(f["value"]); v != "" {
			composite += "_" + v
		}
		n := &node{children: map[string]*node{}, path: parent.path + "." + composite, valueToMetric: value[bool](l, f["value_to_metric"], parent.path)}
		if parent.children[composite] != nil {
			l.fail(at, n.path, "this key and value is there twice")
		}
		if strings.HasSuffix(composite, "*") {
			parent.wildcards = append(parent.wildcards, composite)
		}
		if value[bool](l, f["share_threshold"], n.path) {
			if n.pattern = composite; !strings.HasSuffix(composite, "*") {
				l.fail(at, n.path, "share_threshold needs a value that ends with '*'")
			}
		}
		shadow, quota := value[bool](l, f["shadow_mode"], n.path), value[bool](l, f["quota_mode"], n.path)
		detailed := value[bool](l, f["detailed_metric"], n.path)
		if f["rate_limit"] != nil {
			n.limit = l.loadLimit(f["rate_limit"], n.path, tag)
			n.limit.shadow, n.limit.quota, n.limit.detailed = shadow, quota, detailed
		}
		parent.children[composite] = n
		l.loadDescriptors(n, f["descriptors"], depth+1, tag)
	}
}
