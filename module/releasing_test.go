package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo"
	"gothrottle/commands"
)

// blocks returns the code blocks of a document: lines that begin with four spaces.
func blocks(t *testing.T, name string) (all []string) {
	t.Helper()
	inside := false
	for _, line := range readLines(t, name) {
		code, found := strings.CutPrefix(line, "    ")
		switch {
		case found && inside:
			all[len(all)-1] += code + "\n"
		case found:
			all = append(all, code+"\n")
		}
		inside = found
	}
	return all
}

// The commands of docs/releasing.md, run in a copy of the repository, make a release: the version,
// the changelog and the commands fit together, and the commit and its tag are pushed. make is
// replaced. The commands stop at a wrong tag.
func TestReleasing_commands(t *testing.T) {
	if testing.Short() {
		t.Skip("copies the repository")
	}
	version := nextVersion(t)
	page := blocks(t, "docs/releasing.md")
	if len(page) != 4 {
		t.Fatalf("docs/releasing.md has %d blocks", len(page))
	}
	script := strings.Replace(strings.Join(page, ""), "VERSION=0.1.0", "VERSION="+version, 1)
	folder, origin := copySources(t), filepath.Join(t.TempDir(), "origin.git")
	fakes := t.TempDir()
	const fakeMake = "#!/bin/sh\necho \"$*\" >>build/out/targets\nmkdir -p build/out/packages\ncd build/out/packages\n" +
		"echo x >x.deb\nsha256sum x.deb >SHA256SUMS\n"
	if err := os.WriteFile(filepath.Join(fakes, "make"), []byte(fakeMake), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(script string) (out string, err error) {
		command := exec.Command("bash", "-e", "-c", script)
		command.Dir = folder
		command.Env = append(os.Environ(), "PATH="+fakes+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "ORIGIN="+origin)
		b, err := command.CombinedOutput()
		return string(b), err
	}
	if out, err := run(`chmod 755 build/*.sh; mkdir -p build/out; git init --quiet; git add --all; git commit --quiet --message start
		git init --quiet --bare "$ORIGIN"; git remote add origin "$ORIGIN"`); err != nil {
		t.Fatal(err, out)
	}
	if out, err := run(script); err != nil {
		t.Fatal(err, out)
	}
	const look = `git -C "$ORIGIN" log --branches --format=%s%d --max-count 1; git -C "$ORIGIN" cat-file -t "$(git -C "$ORIGIN" tag)"; cat build/out/targets`
	out, err := run(look)
	if err != nil || !strings.HasPrefix(out, "release: "+version) || !strings.Contains(out, "tag: v"+version) || !strings.HasSuffix(out, "\ntag\ntest-all\npackage\n") {
		t.Errorf("pushed: %s, %v", out, err)
	}
	change(t, folder, "CHANGELOG.md", func(changes string) string {
		for _, wrong := range wrongVersions(t, version, changes, sinces()) {
			t.Error(wrong)
		}
		return changes
	})
	if out, err := run("git tag --delete v" + version + "; git push --quiet --delete origin v" + version + "; sed -i '/^## " + version + "/d' CHANGELOG.md\n" + page[3]); err == nil {
		t.Errorf("a release without a heading: %s", out)
	}
}

// nextVersion is the module's version, or the patch release after it if it is released.
func nextVersion(t *testing.T) string {
	t.Helper()
	_, releases, _ := changelog(t, strings.Join(readLines(t, "CHANGELOG.md"), "\n"))
	if len(releases) == 0 || releases[0].version != cgo.Version {
		return cgo.Version
	}
	parts := strings.Split(cgo.Version, ".")
	patch, err := strconv.Atoi(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	return parts[0] + "." + parts[1] + "." + strconv.Itoa(patch+1)
}

// sinces tells the version that brought each command.
func sinces() map[string]string {
	since := map[string]string{}
	for _, row := range commands.Table {
		since[row.Name] = row.Since
	}
	return since
}
