package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"gothrottle/gateway/internal/rules"
)

// says returns the status and the words of a command.
func says(t *testing.T, env map[string]string, args ...string) (status int, text string) {
	t.Helper()
	var out strings.Builder
	status, asked := command(args, of(env), &out)
	require.True(t, asked, args)
	return status, out.String()
}

// check needs no server. It says what is wrong and where, and which rules a request meets, with flags before and after files.
func TestCommand(t *testing.T) {
	folder := t.TempDir()
	good, bad, burst := folder+"/good.yaml", folder+"/bad.yaml", folder+"/burst.yaml"
	writeFile(t, good, `domain: web
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 5}, unit: 5}]
http:
  trusted_proxies: [10.0.0.0/8]
  rules:
  - {name: login, match: {methods: [POST], path: /login, host: shop.test, headers: {X-Key: k}}, rate_limit: {unit: day, requests_per_unit: 5, algorithm: gcra}}`)
	writeFile(t, bad, "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: day, requests_per_unit: 5, algorithm: lucky}}\n- {key: b, rate_limt: {}}\n")
	writeFile(t, burst, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: 1, algorithm: gcra, burst: 4000000000}}]")
	const login = "login: yes, web.http.login at %s:6, key gw:gcra.24h0m0s:web|http=|login=|address=ip:192.0.2.7\n"
	for _, one := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{good}, 0, "warning: " + good + ":2: rule web.user: 'unit' has no effect here\nno mistakes; domains: 1, limits: 2\n"},
		{[]string{good, bad}, 1, bad + `:3: rule d.a: "lucky" is not one of [fixed_window sliding_window gcra]` + "\n" + bad + ":4: rule d.b: unknown key 'rate_limt'"},
		{[]string{burst}, 1, burst + ":2: rule d.a: throttle: bad parameters: a burst must drain"},
		{[]string{folder + "/none"}, 1, "no such file"},
		{nil, 2, "check FILE..."}, {[]string{"-odd", good}, 2, "-odd"}, {[]string{"-h"}, 0, "check FILE..."}, {[]string{"-H", "x", good}, 2, "colon"},
		{[]string{"-explain", "POST http://shop.test/login", "-H", "X-Key: k", "--from=192.0.2.7", good}, 0, fmt.Sprintf(login, good)},
		{[]string{good, "-explain", "POST /x/../login", "-H", "X-Key: k", "-H", "Host: Shop.test:80", "-from", "192.0.2.7"}, 0, fmt.Sprintf(login, good)},
		{[]string{"-explain", "GET http://shop.test/login", good}, 0, "login: no, because of its methods"},
		{[]string{"-explain", "user=bob", good}, 0, "domain web: user=bob: rule web.user\nlimit: web.user at " + good + ":2, key gw:fixed_window.24h0m0s:web|user=bob\n"},
		{[]string{"-explain", "user=bob,path=/a b", good}, 0, "path=/a b: no rule below web.user"},
	} {
		status, text := says(t, map[string]string{"CACHE_KEY_PREFIX": "gw:"}, append([]string{"check"}, one.args...)...)
		require.Contains(t, text, one.want, one.args)
		require.Equal(t, one.status, status, one.args)
	}
	writeFile(t, bad, "domain: d\nhttp: {trusted_proxies: [], rules: ["+strings.Repeat("{name: a}, ", 30)+"]}")
	_, text := says(t, nil, "check", bad)
	require.Equal(t, 20, strings.Count(text, "a rule needs a name and a rate_limit\n"))
	status, text := says(t, map[string]string{"DEFAULT_ALGORITHM": "odd"}, "check", good)
	require.True(t, status == 1 && strings.Contains(text, "DEFAULT_ALGORITHM"), text)
	status, text = says(t, nil, "--help")
	require.True(t, status == 0 && strings.Contains(text, "  DEBUG_PORT=6070\n      addresses and ports") && strings.Contains(text, "  LOG_FORMAT=text, json\n") && !strings.Contains(text, "MEMCACHE") && !strings.Contains(text, "]("), text)
	status, text = says(t, nil, "chek", good)
	require.True(t, status == 2 && strings.Contains(text, "check FILE..."), text)
	for _, args := range [][]string{nil, {"--quotaRateLimitServiceHost=h"}} { // which Envoy AI Gateway's example has
		_, asked := command(args, of(nil), nil)
		require.False(t, asked)
	}
}

// mutated changes one key or value, and what is below it, to another one.
func mutated(r *rand.Rand, n *yaml.Node) {
	var all []*yaml.Node
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		all = append(all, n)
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(n)
	texts := []string{"5", "-1", "yes", "odd", "15m", "gcra", "none", "key", "value", "rate_limit", "http", "domain", "[]", "{}", "{key: a}", "[{key: a}]", "5000000000", "UTC", "open"}
	var other yaml.Node
	_ = yaml.Unmarshal([]byte(oneOf(r, texts...)), &other)
	*all[1+r.IntN(len(all)-1)] = *other.Content[0]
}

// The schema in deploy is that of the code. It accepts what Parse does without a warning: the rules of the pages, random ones, and
// those with a random change. It refuses many of the others.
func TestSchema(t *testing.T) {
	_, text := says(t, nil, "schema")
	require.Equal(t, text, readFile(t, "../deploy/gateway/rules.schema.json"), "run: go -C gateway generate")
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("rules", document))
	schema := compiler.MustCompile("rules")
	r, both, parsed := rand.New(rand.NewPCG(1, 0)), 0, 0
	texts := ruleFiles(t)
	for seed := range uint64(50) {
		texts = append(texts, newWorld(seed).yaml())
	}
	for i := range 2000 {
		var n yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(texts[i%len(texts)]), &n))
		if i >= len(texts) {
			mutated(r, &n)
		}
		changed, err := yaml.Marshal(&n)
		require.NoError(t, err)
		var value any
		twice := n.Decode(&value)
		asJSON, err := json.Marshal(value)
		if twice != nil || err != nil || strings.Contains(string(asJSON), "null") {
			continue // a key that is there twice or isn't text, or one without a value, about which an editor may complain
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
		require.NoError(t, err)
		set, wrong := rules.Parse([]rules.File{{Name: "f", Text: string(changed)}}, rules.Options{})
		refused := schema.Validate(instance)
		switch {
		case wrong == nil && len(set.Warnings) == 0:
			require.NoError(t, refused, "%s", changed)
		case wrong != nil && refused != nil:
			both++
		case wrong != nil:
			parsed++
		}
		require.True(t, i >= len(texts) || wrong == nil, "%v: %s", wrong, changed)
	}
	require.Greater(t, both, 4*parsed, "the schema refuses few mistakes")
}
