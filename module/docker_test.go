package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// The image's server must not run as root, and an orchestrator must see that without
// looking into the image: the last USER is a number other than 0.
func TestDockerfile_theServerIsNotRoot(t *testing.T) {
	user := ""
	for _, line := range readLines(t, "Dockerfile") {
		if word, found := strings.CutPrefix(line, "USER "); found {
			user = word
		}
		if strings.HasPrefix(line, "FROM ") {
			user = ""
		}
	}
	if !regexp.MustCompile(`^[1-9][0-9]*(:[1-9][0-9]*)?$`).MatchString(user) {
		t.Errorf("the last stage ends as USER %q", user)
	}
}

// Everything that the build needs gets into the image's build, and nothing else does.
func TestDockerignore_listsWhatTheBuildNeeds(t *testing.T) {
	lines := slices.DeleteFunc(readLines(t, ".dockerignore"), func(line string) bool { return strings.HasPrefix(line, "#") })
	if lines[0] != "*" {
		t.Fatalf("the first pattern is %q: the file must begin by leaving everything out", lines[0])
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"!go.mod", "!go.sum", "!build"}
	for _, path := range strings.Fields(string(out)) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, modulePath(t)+"/"), "/")
		needed = append(needed, "!"+folder)
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	var allowed []string
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "!") {
			allowed = append(allowed, line)
		}
	}
	slices.Sort(allowed)
	if !slices.Equal(needed, allowed) {
		t.Errorf("the build needs %q, the file lets in %q", needed, allowed)
	}
	for _, leftOut := range []string{"build/out", "**/*_test.go"} {
		if !slices.Contains(lines, leftOut) {
			t.Errorf("%s is not left out", leftOut)
		}
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
