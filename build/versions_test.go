package build_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// The module's version is that of the newest release, or a later one that a new command names. The changelog begins with
// Unreleased, which is about the module's version. Then come releases, each with a date and an entry. It names each command in
// the release that brought it.
func TestVersion_fitsChangelogAndCommands(t *testing.T) {
	version, texts, newest := moduleVersion(t), map[string]string{}, ""
	for i, section := range strings.Split(read(t, "CHANGELOG.md"), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		name, date, _ := strings.Cut(heading, " - ")
		if i == 0 {
			texts[version] = text
			assert.Equal(t, "Unreleased", heading)
			continue
		}
		_, err := time.Parse(time.DateOnly, date)
		assert.NoError(t, err, heading)
		assert.Regexp(t, `^\d+\.\d+\.\d+$`, name)
		assert.True(t, strings.Contains(text, "\n- "), "%s has no entry", heading)
		newest = cmp.Or(newest, name)
		texts[name] = text
	}
	named := newest == version
	for _, row := range commands.Table {
		named = named || row.Since == version
		assert.True(t, strings.Contains(texts[row.Since], "`"+row.Name+"`"), "%s is since %s, and the changelog does not name the command there", row.Name, row.Since)
	}
	assert.True(t, named && slices.Compare(number(version), number(newest)) >= 0, "version %s is neither the newest release nor a later one that brings a command", version)
}

// The first block of docs/releasing.md sets the version and gives the changelog its heading. Then build/version.sh accepts
// the tag of that version and no other, unless an address is still a placeholder.
func TestReleasing_setsTheVersion(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"module/main.go", "CHANGELOG.md", "build/version.sh", "build/lib.sh"} {
		write(t, filepath.Join(folder, name), read(t, name))
	}
	version := number(moduleVersion(t))
	next := fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2]+1)
	block := strings.Replace(find(t, read(t, "docs/releasing.md"), `\n((?:    .*\n)+)`), "VERSION=0.1.0", "VERSION="+next, 1)
	run := func(tag string) (string, error) {
		return tryIn(folder, "bash", "-c", "set -e; "+strings.Replace(block, "git diff", "", 1)+"\nTAG="+tag+" bash build/version.sh")
	}
	out, err := run("v" + next)
	assert.NoError(t, err)
	assert.Equal(t, next+"\n", out)
	_, err = run("v99.0.0")
	assert.Error(t, err, "another tag")
	write(t, filepath.Join(folder, "SECURITY.md"), read(t, "SECURITY.md"))
	out, err = run("v" + next)
	assert.ErrorContains(t, err, "exit status 1")
	assert.Contains(t, out, "set the addresses in ./SECURITY.md")
	require.NoError(t, os.Remove(filepath.Join(folder, "SECURITY.md")))
	block = "sed -i '/^## " + next + "/d' CHANGELOG.md"
	_, err = run("v" + next)
	assert.Error(t, err, "without a heading")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

// README.md, the image and all Go modules name the same version of Go.
func TestVersion_ofGoIsTheSameEverywhere(t *testing.T) {
	const goMod = `(?m)^go (\d+\.\d+)`
	want := find(t, read(t, "go.mod"), goMod)
	for name, pattern := range map[string]string{"bench/go.mod": goMod, "deploy/go.mod": goMod, "playground/go.mod": goMod, "examples/go/go.mod": goMod,
		"gateway/go.mod": goMod, "README.md": `need Linux, Go (\d+\.\d+) and gcc`, "Dockerfile": `FROM golang:(\d+\.\d+)-`} {
		assert.Equal(t, want, find(t, read(t, name), pattern), name)
	}
}

// README.md and docs/stability.md promise the servers of build/servers.txt, which has the oldest first. Only suites that change have servers that may be away.
func TestServers_pagesNameWhatIsTested(t *testing.T) {
	var ranges, tested []string
	for _, server := range []string{"Redis", "Valkey"} {
		var all []string
		row := regexp.MustCompile(`(?m)^\w+ .* ` + strings.ToLower(server) + `-server +(\d+\.\d+) +(\w+)$`)
		for _, m := range row.FindAllStringSubmatch(read(t, "build/servers.txt"), -1) {
			assert.Equal(t, m[2] == "moving", strings.Contains(m[0], " sid ") || strings.Contains(m[0], " experimental "), m[0])
			all = append(all, m[1])
		}
		last := len(all) - 1
		ranges = append(ranges, fmt.Sprintf("%s %s to %s", server, all[0], all[last]))
		tested = append(tested, server+" "+strings.Join(all[:last], ", ")+" and "+all[last])
	}
	promise := strings.Join(ranges, ", ")
	for want, page := range map[string]string{promise: "README.md", "| " + promise + " | supported |": "docs/stability.md", strings.Join(tested, ", ") + ".": "docs/stability.md"} {
		assert.True(t, strings.Contains(strings.ReplaceAll(read(t, page), "\n", " "), want), "%s does not say %q", page, want)
	}
}
