package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gothrottle/cgo"
)

// section is a part of the changelog: what its "## " line says, and what stands below.
type section struct{ version, date, text string }

var released = regexp.MustCompile(`^(\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$`)

// changelog returns the text under Unreleased, and the releases, the newest first.
func changelog(t *testing.T, text string) (unreleased string, releases []section, wrong []string) {
	t.Helper()
	parts := strings.Split("\n"+text, "\n## ")[1:]
	for i, part := range parts {
		heading, body, _ := strings.Cut(part, "\n")
		m := released.FindStringSubmatch(heading)
		switch {
		case i == 0:
			unreleased = body
			if heading != "Unreleased" {
				wrong = append(wrong, "the changelog begins with "+heading+" and not with Unreleased")
			}
		case m == nil:
			wrong = append(wrong, "the changelog has the heading "+heading)
		default:
			releases = append(releases, section{m[1], m[2], body})
			wrong = append(wrong, wrongRelease(t, releases)...)
		}
	}
	return unreleased, releases, wrong
}

// wrongRelease tells what is wrong about the last of these releases.
func wrongRelease(t *testing.T, releases []section) (wrong []string) {
	last := releases[len(releases)-1]
	if !strings.Contains(last.text, "\n- ") {
		wrong = append(wrong, last.version+" has no entry")
	}
	if _, err := time.Parse(time.DateOnly, last.date); err != nil {
		wrong = append(wrong, last.version+" has no day of a calendar")
	}
	if len(releases) > 1 {
		newer := releases[len(releases)-2]
		if number(t, last.version) >= number(t, newer.version) || last.date > newer.date {
			wrong = append(wrong, last.version+" stands below "+newer.version)
		}
	}
	return wrong
}

// wrongVersions tells in what the module's version, the changelog and the versions that the commands
// name do not fit together.
func wrongVersions(t *testing.T, version, changes string, since map[string]string) (wrong []string) {
	t.Helper()
	unreleased, releases, wrong := changelog(t, changes)
	texts := map[string]string{version: unreleased}
	newest := 0
	for i := len(releases) - 1; i >= 0; i-- {
		texts[releases[i].version] = releases[i].text
		newest = number(t, releases[i].version)
	}
	named := false
	for command, v := range since {
		named = named || v == version
		text, found := texts[v]
		switch {
		case !found:
			wrong = append(wrong, command+" is since "+v+", which is no release and not the module's version")
		case !strings.Contains(text, "`"+command+"`"):
			wrong = append(wrong, command+" is since "+v+", but the changelog does not name the command there")
		}
	}
	switch n := number(t, version); {
	case n < newest:
		wrong = append(wrong, "the module's version is older than the newest release")
	case n > newest && !named:
		wrong = append(wrong, "the module's version is no release, and no command is since it")
	case n > newest && !strings.Contains(unreleased, "\n- "):
		wrong = append(wrong, "nothing stands under Unreleased")
	}
	return wrong
}

// The module's version is that of the newest release, or a later one that a new command names. The
// changelog names each command in the release that brought it.
func TestVersion_fitsChangelogAndCommands(t *testing.T) {
	for _, wrong := range wrongVersions(t, cgo.Version, strings.Join(readLines(t, "CHANGELOG.md"), "\n"), sinces()) {
		t.Error(wrong)
	}
}

// What a release may forget is found.
func TestVersion_forgottenSteps(t *testing.T) {
	const (
		unreleased = "# Changelog\n\n## Unreleased\n\n"
		entry      = "### Fixed\n\n- Something.\n"
		first      = "\n## 0.1.0 - 2026-11-21\n\n- `GO.A`.\n"
	)
	one, two := map[string]string{"GO.A": "0.1.0"}, map[string]string{"GO.A": "0.1.0", "GO.B": "0.2.0"}
	for _, row := range []struct {
		name, version, changes string
		since                  map[string]string
		want                   string
	}{
		{"before the first release", "0.1.0", unreleased + "- `GO.A`.\n", one, ""},
		{"just released", "0.1.0", unreleased + first, one, ""},
		{"a fault is mended", "0.1.0", unreleased + entry + first, one, ""},
		{"the mended fault is released", "0.1.1", unreleased + "\n## 0.1.1 - 2026-12-01\n\n" + entry + first, one, ""},
		{"a command is added", "0.2.0", unreleased + "- `GO.B`.\n" + first, two, ""},
		{"the version, not the heading", "0.1.1", unreleased + entry + first, one, "no command is since it"},
		{"the heading, not the version", "0.1.0", unreleased + "\n## 0.1.1 - 2026-12-01\n\n" + entry + first, one, "older than the newest release"},
		{"the command, not the version", "0.1.0", unreleased + "- `GO.B`.\n" + first, two, "GO.B is since 0.2.0, which is no release"},
		{"the command has a copied version", "0.1.0", unreleased + "- `GO.B`.\n" + first, map[string]string{"GO.B": "0.1.0"}, "does not name the command there"},
		{"the command is not in the changelog", "0.2.0", unreleased + entry + first, two, "does not name the command there"},
		{"no Unreleased", "0.1.0", "# Changelog\n" + first, one, "begins with 0.1.0"},
		{"a heading without a date", "0.1.0", unreleased + "\n## 0.1.0\n\n- `GO.A`.\n", one, "has the heading 0.1.0"},
		{"a date that is none", "0.1.0", unreleased + "\n## 0.1.0 - 2026-02-30\n\n- `GO.A`.\n", one, "no day of a calendar"},
		{"a release without an entry", "0.1.1", unreleased + "\n## 0.1.1 - 2026-12-01\n" + first, one, "0.1.1 has no entry"},
		{"a release in the wrong place", "0.1.1", unreleased + first + "\n## 0.1.1 - 2026-12-01\n\n" + entry, one, "0.1.1 stands below 0.1.0"},
		{"an older date above", "0.1.1", unreleased + "\n## 0.1.1 - 2026-11-01\n\n" + entry + first, one, "0.1.0 stands below 0.1.1"},
	} {
		got := strings.Join(wrongVersions(t, row.version, row.changes, row.since), "; ")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// build/version.sh prints the version that the module tells. A tag must be of that version, and the
// changelog must have the version's heading.
func TestVersion_script(t *testing.T) {
	s := copyScripts(t, []string{"build/version.sh", "module/main.go"}, nil)
	if _, out, ok := s.run("build/version.sh", "TAG="); !ok || out != cgo.Version+"\n" {
		t.Errorf("%t, %q, the module is version %s", ok, out, cgo.Version)
	}
	s.write("module/main.go", "package main\n\nconst version = \"1.2.3\"\n")
	for _, row := range []struct {
		changes, tag, want string
		ok                 bool
	}{
		{"## 1.2.3 - 2026-11-21\n", "v1.2.3", "1.2.3\n", true},
		{"## 1.2.3 - 2026-11-21\n", "v1.2.4", "the tag is v1.2.4", false},
		{"## 1.2.3 - 2026-11-21\n", "1.2.3", "the tag is 1.2.3", false},
		{"## Unreleased\n", "v1.2.3", "no heading of version 1.2.3", false},
		{"## 1.2.30 - 2026-11-21\n", "v1.2.3", "no heading of version 1.2.3", false},
	} {
		s.write("CHANGELOG.md", row.changes)
		if _, out, ok := s.run("build/version.sh", "TAG="+row.tag); ok != row.ok || !strings.Contains(out, row.want) {
			t.Errorf("%q, %s: %t, %s", row.changes, row.tag, ok, out)
		}
	}
	s.write("module/main.go", "package main\n")
	if _, out, ok := s.run("build/version.sh", "TAG="); ok || !strings.Contains(out, "has no version") {
		t.Errorf("no version: %t, %s", ok, out)
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
		"bench/go.mod":       `(?m)^go (\d+\.\d+)`,
		"deploy/go.mod":      `(?m)^go (\d+\.\d+)`,
		"playground/go.mod":  `(?m)^go (\d+\.\d+)`,
		"examples/go/go.mod": `(?m)^go (\d+\.\d+)`,
		"README.md":          `needs Go (\d+\.\d+) and gcc`,
		"Dockerfile":         `GO_IMAGE=golang:(\d+\.\d+)-`,
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
