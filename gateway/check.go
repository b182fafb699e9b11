package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"gothrottle/gateway/internal/rules"
	"gothrottle/gateway/internal/xds"
)

const usage = `gothrottle-gateway answers proxies that ask whether a request may pass.

  gothrottle-gateway                       serve
  gothrottle-gateway check FILE...         say what is wrong with rules, without a server. The status is 1 if something is
      -explain 'POST /login'               and say which HTTP rules this request meets,
      -explain 'user=bob,path=/search'     or which rules a descriptor meets
      -H 'X-Api-Key: k'                    a header of the request
      -from 192.0.2.7                      the address of its client
  gothrottle-gateway schema                print the JSON Schema of a file of rules, for editors
  gothrottle-gateway -help                 print this

Settings are environment variables:

`

// command does what the arguments ask for, and returns the program's status. asked is false if they ask for nothing:
// envoyproxy/ratelimit ignores flags.
func command(args []string, env func(string) string, out io.Writer) (status int, asked bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch word := strings.TrimLeft(args[0], "-"); {
	case word == "help" || word == "h":
		help(out)
	case args[0] == "check":
		status = check(args[1:], env, out)
	case args[0] == "schema":
		fmt.Fprint(out, rules.Schema())
	case args[0] != word:
		return 0, false
	default:
		fmt.Fprint(out, usage)
		status = 2
	}
	return status, true
}

// link is a link of docs/gateway.md, whose table has the same words.
var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

func help(out io.Writer) {
	fmt.Fprint(out, usage)
	(&settings{xds: &xds.Options{}}).table().VisitAll(func(one *flag.Flag) {
		if !strings.HasPrefix(one.Usage, "no effect") {
			value := one.DefValue
			if some, ok := one.Value.(words); ok {
				value = strings.Join(some, ", ")
			}
			fmt.Fprintf(out, "  %s=%s\n      %s\n", one.Name, value, link.ReplaceAllString(one.Usage, "$1"))
		}
	})
}

// question is a request that -explain asks about.
type question struct {
	text, from string
	header     http.Header
}

// check says what is wrong with files of rules, or which of them a request meets.
func check(args []string, env func(string) string, out io.Writer) (status int) {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() { fmt.Fprint(out, usage) }
	q := question{header: http.Header{}}
	f.StringVar(&q.text, "explain", "", "")
	f.StringVar(&q.from, "from", "192.0.2.1", "")
	f.Func("H", "", func(line string) error {
		name, value, found := strings.Cut(line, ":")
		q.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		return map[bool]error{false: errors.New("a header has a colon after its name")}[found]
	})
	var paths []string
	for ; len(args) > 0; args = args[1:] { // flags may follow files
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return 0
		} else if err != nil {
			return 2
		}
		if args = f.Args(); len(args) == 0 {
			break
		}
		paths = append(paths, args[0])
	}
	if len(paths) == 0 {
		f.Usage()
		return 2
	}
	set, prefix, err := load(paths, env)
	if err == nil && q.text != "" {
		err = q.explain(out, set, prefix)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	for _, line := range set.Warnings {
		fmt.Fprintln(out, "warning:", line)
	}
	if q.text == "" {
		fmt.Fprintf(out, "no mistakes; domains: %d, limits: %d\n", len(set.Domains), len(set.Limits))
	}
	return 0
}

// load reads rules as a gateway with these settings would, and returns what begins its keys.
func load(paths []string, env func(string) string) (set *rules.Set, prefix string, err error) {
	s, err := readSettings(env)
	if err != nil {
		return nil, "", err
	}
	p, err := newProgram(s, io.Discard)
	if err != nil {
		return nil, "", err
	}
	defer p.close()
	var files []rules.File
	for _, path := range paths {
		some, err := rules.Read(path)
		if err != nil {
			return nil, "", err
		}
		files = append(files, some...)
	}
	if set, err = rules.Parse(files, s.rules); err == nil {
		err = p.decides.Load(set)
	}
	return set, s.engine.Prefix, err
}

// explain says which rules the request meets, in all domains.
func (q *question) explain(out io.Writer, set *rules.Set, prefix string) error {
	say := func(f rules.Found) string { return f.Where(prefix) }
	method, uri, isHTTP := strings.Cut(q.text, " ")
	if isHTTP && !strings.ContainsAny(method, "=,") {
		for _, name := range slices.Sorted(maps.Keys(set.HTTP)) {
			r, err := q.asked(method, uri, set.HTTP[name].Proxy())
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "domain %s: %s\n", name, strings.Join(set.HTTP[name].Explain(r, say), "\n"))
		}
		return nil
	}
	var entries rules.Descriptor
	for pair := range strings.SplitSeq(q.text, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(pair), "=")
		entries = append(entries, &common.RateLimitDescriptor_Entry{Key: k, Value: v})
	}
	for _, name := range slices.Sorted(maps.Keys(set.Domains)) {
		fmt.Fprintf(out, "domain %s: %s\n", name, strings.Join(set.Domains[name].Explain(entries, say), "\n"))
	}
	return nil
}

// asked is the request by which a proxy, if the rules trust one, asks about a client's.
func (q *question) asked(method, uri, proxy string) (*http.Request, error) {
	host, path := "", uri
	if _, rest, is := strings.Cut(uri, "://"); is {
		host, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	r, err := http.NewRequest(method, "/", nil)
	if err != nil {
		return nil, err
	}
	r.Header = q.header.Clone()
	r.Header.Set("X-Forwarded-Uri", path)
	r.Header.Set("X-Forwarded-Method", method)
	r.Header.Set("X-Forwarded-Host", cmp.Or(host, q.header.Get("Host")))
	r.Header.Set("X-Forwarded-For", q.from)
	r.RemoteAddr = net.JoinHostPort(cmp.Or(proxy, q.from), "1")
	return r, nil
}
