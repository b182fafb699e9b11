package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo"
	"gothrottle/commands"
)

// A version that is not yet in the changelog is the one that the newest commands name, and no
// command is newer than the module.
func TestVersion_isReleasedOrThatOfTheNewestCommand(t *testing.T) {
	newest := 0
	for _, row := range commands.Table {
		newest = max(newest, number(t, row.Since))
	}
	version := number(t, cgo.Version)
	released := slices.ContainsFunc(readLines(t, "CHANGELOG.md"), func(line string) bool {
		return strings.HasPrefix(line, "## "+cgo.Version)
	})
	if version < newest || version > newest && !released {
		t.Errorf("the module is version %s, which the changelog does not have; the newest command has another version", cgo.Version)
	}
}

// number turns three numbers below 100 into one that can be compared.
func number(t *testing.T, version string) (n int) {
	t.Helper()
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		t.Fatalf("version %q", version)
	}
	for _, part := range parts {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i > 99 {
			t.Fatalf("version %q", version)
		}
		n = n*100 + i
	}
	return n
}

// The README, the image and the scripts name the Go version that go.mod asks for. The image and the
// scripts name the same base images.
func TestVersion_ofGoIsTheSameEverywhere(t *testing.T) {
	all := func(name string) string { return strings.Join(readLines(t, name), "\n") }
	find := func(name, pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(all(name))
		if m == nil {
			t.Fatalf("%s does not have %s", name, pattern)
		}
		return m[1]
	}
	want := find("go.mod", `(?m)^go (\d+\.\d+)`)
	for name, pattern := range map[string]string{
		"bench/go.mod":  `(?m)^go (\d+\.\d+)`,
		"deploy/go.mod": `(?m)^go (\d+\.\d+)`,
		"README.md":     `needs Go (\d+\.\d+) and gcc`,
		"Dockerfile":    `GO_IMAGE=golang:(\d+\.\d+)-`,
	} {
		if got := find(name, pattern); got != want {
			t.Errorf("%s names Go %s, go.mod names Go %s", name, got, want)
		}
	}
	for _, image := range []string{"GO_IMAGE", "SERVER_IMAGE", "INIT_IMAGE"} {
		if a, b := find("Dockerfile", "ARG "+image+"=(.*)"), find("build/lib.sh", image+`=\$\{`+image+`:-(.*)\}`); a != b {
			t.Errorf("%s is %s in the Dockerfile and %s in build/lib.sh", image, a, b)
		}
	}
}
