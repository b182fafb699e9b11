package rules

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// File is one file of rules.
type File struct{ Name, Text string }

// Read returns the files: one, or all in a folder and below it. A name that begins with a dot isn't a file of rules:
// Kubernetes keeps the versions of a ConfigMap in such folders.
func Read(root string) (files []File, err error) {
	root, err = filepath.EvalSymlinks(root) // WalkDir does not follow a link
	if err != nil {
		return nil, fmt.Errorf("no rules: set CONFIG to a file or folder: %w", err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return filepath.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() { // reading a pipe could wait without end, and links to folders aren't followed
			err = fmt.Errorf("%s is not a regular file", path)
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, File{path, string(text)})
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no rule file in %s: set CONFIG to a file or folder", root)
	}
	return files, err
}

// The levels of a file. The keys of a level are the fields of its type, in lower case or as the tag yaml says, and the tag
// words lists what a text may be. A part that is a level of its own stays a node, so that a mistake in it names its rule.
type (
	domainLevel struct {
		Domain      string
		Descriptors []yaml.Node
		HashTag     tagging `yaml:"hash_tag" words:"none domain descriptor"`
		HTTP        yaml.Node
	}
	descriptorLevel struct {
		Key, Value     string
		RateLimit      yaml.Node `yaml:"rate_limit"`
		Descriptors    []yaml.Node
		ShadowMode     bool `yaml:"shadow_mode"`
		QuotaMode      bool `yaml:"quota_mode"`
		DetailedMetric bool `yaml:"detailed_metric"`
		ValueToMetric  bool `yaml:"value_to_metric"`
		ShareThreshold bool `yaml:"share_threshold"`
		Share, Reserve *uint32
		Metadata       map[string]any
	}
	limitLevel struct {
		Unit            string
		RequestsPerUnit uint32 `yaml:"requests_per_unit"`
		Header          string // that may bring another RequestsPerUnit, up to Max
		Max             uint32
		Unlimited       bool
		Name            string
		Replaces        []yaml.Node
		Algorithm       Algorithm `words:"fixed_window sliding_window gcra"`
		Burst           *uint32
		Lockout         *time.Duration
		Concurrency     *uint32
		Hold            *time.Duration
		TimeZone        zone    `yaml:"time_zone"`
		StartsOn        int     `yaml:"starts_on"` // the day of a month; 0: the first
		Excess          string  `words:"charge refuse"`
		LateHits        *bool   `yaml:"late"`
		OnFailure       Failure `yaml:"on_failure" words:"open closed local"`
	}
	replacesLevel struct{ Name string }
	httpLevel     struct {
		TrustedProxies []network `yaml:"trusted_proxies"`
		ClientAddress  string    `yaml:"client_address"`
		IPv6Prefix     *int      `yaml:"ipv6_prefix"`
		IgnoreCase     bool      `yaml:"ignore_case"`
		Rules          []yaml.Node
	}
	httpRuleLevel struct {
		Name       string
		Match      yaml.Node
		By         []string
		RateLimit  yaml.Node `yaml:"rate_limit"`
		ShadowMode bool      `yaml:"shadow_mode"`
		Cost       yaml.Node
	}
	costLevel struct {
		Header     string
		Estimate   uint32
		Hold       *time.Duration
		Unreported string `words:"lapse charge"`
		Overdue    string `words:"charge ignore"`
	}
	matchLevel struct {
		Methods    []string
		Path, Host string
		Headers    map[string]string
		Addresses  []network
	}
)

// theirKeys are the keys of all levels that envoyproxy/ratelimit has.
var theirKeys = strings.Fields(`domain descriptors key value rate_limit shadow_mode quota_mode detailed_metric value_to_metric
	share_threshold unit requests_per_unit unlimited name replaces metadata`)

// network is 10.0.0.0/8, or an address as a network of its own.
type network struct{ netip.Prefix }

// UnmarshalText reads a network.
func (n *network) UnmarshalText(text []byte) (err error) {
	if address, wrong := netip.ParseAddr(string(text)); wrong == nil {
		n.Prefix = netip.PrefixFrom(address, address.BitLen())
	} else if n.Prefix, err = netip.ParsePrefix(string(text)); err != nil {
		err = fmt.Errorf("%q isn't a network: write 10.0.0.0/8 or ::1", text)
	}
	return err
}

// UnmarshalYAML reads a network. Package yaml would read a mapping into the fields of a Prefix.
func (n *network) UnmarshalYAML(at *yaml.Node) error { return n.UnmarshalText(textOf(at)) }

func textOf(at *yaml.Node) []byte {
	if at.Kind != yaml.ScalarNode {
		return []byte(at.ShortTag())
	}
	return []byte(at.Value)
}

// zone is a name of the IANA time zone database.
type zone struct{ *time.Location }

// UnmarshalText reads a name. It refuses Local, which may be another zone for each gateway.
func (z *zone) UnmarshalText(text []byte) (err error) {
	if z.Location, err = time.LoadLocation(string(text)); err != nil || z.String() == "Local" {
		err = fmt.Errorf("%q isn't a time zone: write UTC or Europe/Berlin", text)
	}
	return err
}

// UnmarshalYAML reads a name.
func (z *zone) UnmarshalYAML(at *yaml.Node) error { return z.UnmarshalText(textOf(at)) }

// loader reads files into rules.
type loader struct {
	Options
	*Set
	file   string
	count  int
	merges int // of keys, inside each other

	mistakes []error
}

// mistake is what is wrong with a file.
type mistake struct{ error }

// try reads a part, which a mistake in it ends. The parts after it are read, too, unless there are many mistakes.
func (l *loader) try(read func()) {
	defer func() {
		e := recover()
		if one, is := e.(mistake); is {
			l.mistakes, l.merges = append(l.mistakes, one.error), 0
		} else if e != nil {
			panic(e)
		}
	}()
	if len(l.mistakes) < maxMistakes {
		read()
	}
}

// fail ends the reading of a part.
func (l *loader) fail(at *yaml.Node, rule, format string, args ...any) {
	panic(mistake{errors.New(l.line(at, rule, format, args...))})
}

func (l *loader) warn(at *yaml.Node, rule, format string, args ...any) {
	l.Warnings = append(l.Warnings, l.line(at, rule, format, args...))
}

// line says something about a rule. The rule may be empty.
func (l *loader) line(at *yaml.Node, rule, format string, args ...any) string {
	if rule != "" {
		rule = "rule " + rule + ": "
	}
	return l.place(at) + ": " + rule + fmt.Sprintf(format, args...)
}

func (l *loader) place(at *yaml.Node) string { return fmt.Sprintf("%s:%d", l.file, max(at.Line, 1)) }

// plain turns package yaml's messages into plain words.
var plain = strings.NewReplacer("cannot unmarshal", "cannot read", "[]yaml.Node", "a list", "[]string", "a list", "[]rules.network", "a list",
	"map[string]string", "a mapping", "time.Duration", "a time such as 15m", "uint32", "a number from 0")

// decode reads a mapping into a level. A key that appears twice is refused.
func decode[T any](l *loader, at *yaml.Node, rule string) (level T) {
	l.checkKeys(at, rule, reflect.TypeFor[T]())
	err := at.Decode(&level)
	if wrong := (*yaml.TypeError)(nil); errors.As(err, &wrong) { // "line 7: cannot unmarshal ..."
		line, text, _ := strings.Cut(wrong.Errors[0], ": ")
		at, err = &yaml.Node{}, errors.New(plain.Replace(text))
		_, _ = fmt.Sscanf(line, "line %d", &at.Line)
	}
	if err != nil {
		l.fail(at, rule, "%s", err)
	}
	return level
}

// checkKeys refuses unknown keys and words. A key of another level has no effect: envoyproxy/ratelimit ignores it, so it is a
// warning. Numbers with a fraction are refused as there: as a value such a number may not be the text that was meant.
func (l *loader) checkKeys(at *yaml.Node, rule string, level reflect.Type) {
	var keys []string
	words := map[string][]string{}
	for field := range level.Fields() {
		key := cmp.Or(field.Tag.Get("yaml"), strings.ToLower(field.Name))
		keys, words[key] = append(keys, key), strings.Fields(field.Tag.Get("words"))
	}
	if at = resolve(at); at.Kind != yaml.MappingNode {
		l.fail(at, rule, "this must be a mapping of keys to values, with the keys %s", strings.Join(keys, ", "))
	}
	for i := 0; i < len(at.Content); i += 2 {
		k, v := at.Content[i], resolve(at.Content[i+1])
		switch known := words[k.Value]; {
		case k.ShortTag() == "!!merge":
			if l.merges++; l.merges > maxDepth { // an alias may refer to a mapping that holds the alias
				l.fail(k, rule, "more than %d levels", maxDepth)
			}
			l.checkKeys(v, rule, level)
			l.merges--
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			l.fail(k, rule, "the key %s isn't text", k.Value)
		case v.ShortTag() == "!!float":
			l.fail(v, rule, "%s is a number with a fraction: put a value in quotation marks", v.Value)
		case !slices.Contains(keys, k.Value) && !slices.Contains(theirKeys, k.Value):
			l.fail(k, rule, "unknown key '%s': known here are %s", k.Value, strings.Join(keys, ", "))
		case !slices.Contains(keys, k.Value):
			l.warn(k, rule, "'%s' has no effect here", k.Value)
		case len(known) > 0 && given(v) && !slices.Contains(known, v.Value):
			l.fail(v, rule, "%q is not one of %v", v.Value, known)
		}
	}
}

func resolve(at *yaml.Node) *yaml.Node {
	for at.Kind == yaml.AliasNode {
		at = at.Alias
	}
	return at
}

func given(at *yaml.Node) bool { return !at.IsZero() && at.ShortTag() != "!!null" }
