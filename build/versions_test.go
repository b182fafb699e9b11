package build_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/commands"
)

// moduleVersion returns the version in module/main.go.
func moduleVersion(t *testing.T) string {
	t.Helper()
	return find(t, read(t, "module/main.go"), `const version = "(.*)"`)
}

// number returns the numbers of a version, such as 0.1.0.
func number(version string) []int {
	n := make([]int, 3)
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &n[0], &n[1], &n[2])
	return n
}

// wrongVersions says where the module's version, the changelog and the versions that the commands name do not fit together.
func wrongVersions(version, changelog string, since map[string]string) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	texts, newest := map[string]string{}, ""
	for i, section := range strings.Split(changelog, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		name, date, _ := strings.Cut(heading, " - ")
		if i == 0 {
			texts[version] = text
			if heading != "Unreleased" {
				complain("the changelog begins with %s and not with Unreleased", heading)
			}
			continue
		}
		if _, err := time.Parse(time.DateOnly, date); err != nil || fmt.Sprintf("%d.%d.%d", number(name)[0], number(name)[1], number(name)[2]) != name {
			complain("the heading %q has no version and date", heading)
		}
		if !strings.Contains(text, "\n- ") {
			complain("%s has no entry", name)
		}
		if newest == "" {
			newest = name
		}
		texts[name] = text
	}
	named := newest == version
	for command, v := range since {
		named = named || v == version
		if !strings.Contains(texts[v], "`"+command+"`") {
			complain("%s is since %s, and the changelog does not name the command there", command, v)
		}
	}
	if !named || slices.Compare(number(version), number(newest)) < 0 {
		complain("version %s is neither the newest release nor a later one that brings a command", version)
	}
	return wrong
}

func sinces() map[string]string {
	since := map[string]string{}
	for _, row := range commands.Table {
		since[row.Name] = row.Since
	}
	return since
}

// The module's version is that of the newest release, or a later one that a new command names. The changelog names each
// command in the release that brought it.
func TestVersion_fitsChangelogAndCommands(t *testing.T) {
	for _, wrong := range wrongVersions(moduleVersion(t), read(t, "CHANGELOG.md"), sinces()) {
		t.Error(wrong)
	}
}

func TestVersion_forgottenSteps(t *testing.T) {
	const start, first = "# Changelog\n\n## Unreleased\n\n", "\n## 0.1.0 - 2026-11-21\n\n- `GO.A`.\n"
	one, two := map[string]string{"GO.A": "0.1.0"}, map[string]string{"GO.A": "0.1.0", "GO.B": "0.2.0"}
	for _, row := range []struct {
		version, changes string
		since            map[string]string
		want             string
	}{
		{"0.1.0", start + "- `GO.A`.\n", one, ""},
		{"0.1.0", start + "- A fix.\n" + first, one, ""},
		{"0.2.0", start + "- `GO.B`.\n" + first, two, ""},
		{"0.1.1", start + first, one, "neither the newest release"},
		{"0.1.0", start + "\n## 0.1.1 - 2026-12-01\n\n- A fix.\n" + first, one, "neither the newest release"},
		{"0.1.0", start + first, two, "GO.B is since 0.2.0"},
		{"0.2.0", start + first, two, "does not name the command there"},
		{"0.1.0", "# Changelog\n" + first, one, "begins with 0.1.0"},
		{"0.1.0", start + "\n## 0.1.0\n\n- `GO.A`.\n", one, "no version and date"},
	} {
		got := strings.Join(wrongVersions(row.version, row.changes, row.since), "; ")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s of %q: %q, want %q", row.version, row.changes, got, row.want)
		}
	}
}

// The first block of docs/releasing.md sets the version and gives the changelog its heading. Then build/version.sh accepts
// the tag of that version and no other.
func TestReleasing_setsTheVersion(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"module/main.go", "CHANGELOG.md", "build/version.sh", "build/lib.sh"} {
		write(t, filepath.Join(folder, name), read(t, name))
	}
	version := number(moduleVersion(t))
	next := fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2]+1)
	block := strings.Replace(find(t, read(t, "docs/releasing.md"), `\n((?:    .*\n)+)`), "VERSION=0.1.0", "VERSION="+next, 1)
	run := func(tag string) (string, error) {
		script := "set -e; " + strings.Replace(block, "git diff", "", 1) + "\nTAG=" + tag + " bash build/version.sh"
		command := exec.Command("bash", "-c", script)
		command.Dir = folder
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := run("v" + next); err != nil || out != next+"\n" {
		t.Errorf("%v, %s", err, out)
	}
	if out, err := run("v99.0.0"); err == nil {
		t.Errorf("another tag: %s", out)
	}
	block = "sed -i '/^## " + next + "/d' CHANGELOG.md"
	if out, err := run("v" + next); err == nil {
		t.Errorf("without a heading: %s", out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// README.md, the image and all Go modules name the same version of Go. The Dockerfile and build/lib.sh name the same images.
func TestVersion_ofGoIsTheSameEverywhere(t *testing.T) {
	const goMod = `(?m)^go (\d+\.\d+)`
	want := find(t, read(t, "go.mod"), goMod)
	for name, pattern := range map[string]string{"bench/go.mod": goMod, "deploy/go.mod": goMod, "playground/go.mod": goMod, "examples/go/go.mod": goMod,
		"gateway/go.mod": goMod, "README.md": `needs Go (\d+\.\d+) and gcc`, "Dockerfile": `GO_IMAGE=golang:(\d+\.\d+)-`} {
		if got := find(t, read(t, name), pattern); got != want {
			t.Errorf("%s names Go %s, go.mod names Go %s", name, got, want)
		}
	}
	for _, image := range []string{"GO_IMAGE", "SERVER_IMAGE", "INIT_IMAGE"} {
		if a, b := find(t, read(t, "Dockerfile"), "ARG "+image+"=(.*)"), find(t, read(t, "build/lib.sh"), image+`=\$\{`+image+`:-(.*)\}`); a != b {
			t.Errorf("%s is %s in the Dockerfile and %s in build/lib.sh", image, a, b)
		}
	}
}

// README.md and docs/stability.md promise the servers of build/servers.txt: from the oldest to the newest major version.
func TestServers_pagesNameWhatIsTested(t *testing.T) {
	versions := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^\w+ +(\S+) +(\S+) +(redis|valkey)-server +(\d+\.\d+) +(\w+)$`).FindAllStringSubmatch(read(t, "build/servers.txt"), -1) {
		if moving := m[1] == "sid" || m[2] == "experimental"; moving != (m[5] == "moving") {
			t.Errorf("%s-server of %s is %s", m[3], m[1], m[5])
		}
		versions[m[3]] = append(versions[m[3]], m[4])
	}
	var ranges, tested []string
	for _, server := range []string{"redis", "valkey"} {
		all := versions[server]
		slices.SortFunc(all, func(a, b string) int { return slices.Compare(number(a+".0"), number(b+".0")) })
		name, last := strings.ToUpper(server[:1])+server[1:], len(all)-1
		ranges = append(ranges, fmt.Sprintf("%s %s to %d.x", name, all[0], number(all[last] + ".0")[0]))
		tested = append(tested, name+" "+strings.Join(all[:last], ", ")+" and "+all[last])
	}
	for page, want := range map[string]string{"README.md": strings.Join(ranges, ", "), "docs/stability.md": "| " + strings.Join(ranges, ", ") + " | supported |"} {
		if !strings.Contains(read(t, page), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
	if want := strings.Join(tested, ", ") + "."; !strings.Contains(strings.ReplaceAll(read(t, "docs/stability.md"), "\n", " "), want) {
		t.Errorf("docs/stability.md does not say %q", want)
	}
}
