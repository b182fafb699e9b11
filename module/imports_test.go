package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rules says what a folder may import beside the standard library; "./" begins a folder of this
// repository. Only cgo says import "C" or unsafe. Decisions read no clock. The fake host is for
// tests: the module must not hold it.
var rules = map[string]struct{ allowed, forbidden []string }{
	"funnel":                {nil, []string{"C", "unsafe", "time", "sync"}},
	"funnel/oracle":         {[]string{"./funnel"}, []string{"C", "unsafe", "time", "sync"}},
	"commands":              {[]string{"./funnel"}, []string{"C", "unsafe", "time", "sync"}},
	"commands/memory":       {[]string{"./commands", "./funnel"}, []string{"C", "unsafe", "time"}},
	"throttle":              {[]string{"./commands/memory", "./funnel", "github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
	"throttle/redisrate":    {[]string{"./throttle", "github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
	"throttle/throttlehttp": {[]string{"./throttle"}, []string{"C", "unsafe"}},
	"throttle/throttletest": {[]string{"./throttle", "./commands/memory", "./funnel", "github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
	"cgo":                   {[]string{"./commands", "./funnel", "./cgo"}, []string{"time", "sync"}},
	"module":                {[]string{"./cgo"}, []string{"C", "unsafe", "./cgo/fakehost"}},
	"bench":                 {[]string{"./funnel", "./tests/server", "./throttle", "github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9", "github.com/throttled/throttled/v2", "gonum.org/v1/plot"}, []string{"C", "unsafe"}},
	"bench/choosing":        {[]string{"./funnel", "gonum.org/v1/plot"}, []string{"C", "unsafe"}},
	"deploy":                {nil, []string{"C", "unsafe"}},
	"deploy/packaging/sbom": {[]string{"github.com/CycloneDX/cyclonedx-go"}, []string{"C", "unsafe"}},
	"examples": {[]string{"./throttle", "github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/go-chi/chi/v5", "github.com/gin-gonic/gin",
		"github.com/labstack/echo/v4", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel", "google.golang.org/genproto/googleapis/rpc",
		"google.golang.org/grpc", "google.golang.org/protobuf"}, []string{"C", "unsafe"}},
	"tests":          {[]string{"./commands", "./tests/corpus", "./tests/server", "github.com/redis/go-redis/v9", "github.com/stretchr/testify"}, []string{"C", "unsafe"}},
	"tests/corpus":   {[]string{"./commands", "./commands/memory", "./funnel"}, []string{"C", "unsafe"}},
	"tests/failover": {[]string{"./tests/server", "./throttle", "github.com/redis/go-redis/v9", "github.com/stretchr/testify"}, []string{"C", "unsafe"}},
	"tests/sim":      {[]string{"./commands/memory", "./funnel", "./funnel/oracle", "./tests/corpus", "./throttle", "github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
	"tests/chaos":    {[]string{"./funnel", "./tests/server", "github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
	"tests/server":   {[]string{"github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
	"playground":     {[]string{"./throttle", "github.com/redis/go-redis/v9"}, []string{"C", "unsafe"}},
}

// oracle is a package of models that only tests import, and the program of make test-chaos.
const oracle = "./funnel/oracle"

// The shared object holds no package but ours and the standard library's, so it has no other licences
// than ours and Go's.
func TestImports_theModuleHasNoDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, name := range packages {
		if !strings.HasPrefix(name, modulePath(t)+"/") {
			t.Errorf("the module holds %s", name)
		}
	}
	if len(packages) < 4 {
		t.Errorf("the module holds %q", packages)
	}
}

// modulePath is the path that the imports of this repository's packages begin with.
func modulePath(t *testing.T) string {
	t.Helper()
	path, found := strings.CutPrefix(readLines(t, "go.mod")[0], "module ")
	if !found {
		t.Fatal("go.mod does not begin with the module's path")
	}
	return path
}

func TestImports(t *testing.T) {
	checked := map[string]int{}
	own := modulePath(t) + "/"
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		folder := strings.Split(filepath.ToSlash(path), "/")[1]
		if inner := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../"); rules[inner].allowed != nil {
			folder = inner
		}
		rule, known := rules[folder]
		if !known {
			t.Errorf("%s: no rule for the folder %s", path, folder)
			return nil
		}
		checked[folder]++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if inner, found := strings.CutPrefix(name, own); found {
				name = "./" + inner
			}
			first, _, _ := strings.Cut(name, "/")
			standard := !strings.Contains(first, ".")
			test := strings.HasSuffix(path, "_test.go")
			switch {
			case test && standard:
			case slices.Contains(rule.forbidden, name), !test && name == oracle && folder != "tests/chaos":
				t.Errorf("%s must not import %s", path, name)
			case !standard && !slices.ContainsFunc(rule.allowed, func(a string) bool { return name == a || strings.HasPrefix(name, a+"/") }):
				if !test || strings.HasPrefix(folder, "tests") {
					t.Errorf("%s must not import %s", path, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range rules {
		if checked[folder] == 0 && folder != "tests" {
			t.Errorf("no files found in %s", folder)
		}
	}
}
