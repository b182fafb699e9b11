package deploy

import (
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

// readWorkflow returns one of GitHub's workflows. actionlint must not complain about it.
func readWorkflow(t *testing.T, name string) *actionlint.Workflow {
	t.Helper()
	file := filepath.Join("../.github/workflows", name)
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(readFile(t, file))
	found, err := linter.Lint(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	workflow, wrong := actionlint.Parse(text)
	if found = append(found, wrong...); len(found) > 0 {
		t.Fatal(found[0])
	}
	return workflow
}

// The workflows run .ci/run, make package and scripts of build, and nothing of their own, in the image that the Dockerfile
// builds in. GitHub's program makes the draft of a release, and GitHub's action publishes the page, in the only jobs that
// may write. Actions are GitHub's, pinned by commit. Each job has a time limit.
func TestWorkflows_runTheScripts(t *testing.T) {
	image := nameOf(t, "GO_IMAGE")
	want := map[string]string{
		"test": "docker run --rm --init --privileged --cgroupns host --volume /var/lib/docker " +
			`--volume "$PWD:/gothrottle" --workdir /gothrottle ` + image + " .ci/run ${{ matrix.parts }}",
		"kind":    "build/test-kind.sh",
		"package": "build/version.sh\nmake package ARCH='amd64 arm64'",
		"image":   "build/image.sh && docker save --output images.tar gothrottle:dev gothrottle-init:dev",
		"draft":   `gh release create "$TAG" --draft --verify-tag --title "$TAG" --notes "See CHANGELOG.md. The images are $IMAGES" packages/*`,
		"page":    "build/page.sh && tar -C build/out/playground --owner=0 --group=0 -cf artifact.tar .",
		"publish": "",
	}
	jobs := maps.Clone(readWorkflow(t, "ci.yml").Jobs)
	maps.Copy(jobs, readWorkflow(t, "release.yml").Jobs)
	maps.Copy(jobs, readWorkflow(t, "pages.yml").Jobs)
	for id, job := range jobs {
		var runs []string
		for _, step := range job.Steps {
			switch e := step.Exec.(type) {
			case *actionlint.ExecRun:
				if step.ID == nil { // the push of the images has an ID
					runs = append(runs, strings.TrimSpace(e.Run.Value))
				}
			case *actionlint.ExecAction:
				if !regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`).MatchString(e.Uses.Value) {
					t.Errorf("%s uses %s", id, e.Uses.Value)
				}
			}
		}
		if got := strings.Join(runs, "\n"); got != want[id] {
			t.Errorf("%s runs %q, want %q", id, got, want[id])
		}
		if job.TimeoutMinutes == nil || (job.Permissions != nil) != (id == "draft" || id == "publish") || (id == "package" || id == "page") && job.Container.Image.Value != image {
			t.Errorf("%s has no time limit, or other permissions or another image than it should", id)
		}
	}
	if len(jobs) != len(want) {
		t.Errorf("%d jobs, want %d", len(jobs), len(want))
	}
}

// The workflows may read the repository and no more. ci.yml runs every part of make test-all. release.yml begins for the
// tags that build/version.sh accepts, and hands the tag to it.
func TestWorkflows_events(t *testing.T) {
	ci, release := readWorkflow(t, "ci.yml"), readWorkflow(t, "release.yml")
	for _, w := range []*actionlint.Workflow{ci, release, readWorkflow(t, "pages.yml")} {
		if w.Concurrency == nil || w.Permissions == nil || len(w.Permissions.Scopes) != 1 || w.Permissions.Scopes["contents"].Value.Value != "read" {
			t.Errorf("%s may write, or run twice at once", w.Name.Value)
		}
	}
	var parts []string
	for _, value := range ci.Jobs["test"].Strategy.Matrix.Rows["parts"].Values {
		parts = append(parts, strings.Fields(strings.Trim(value.String(), `"`))...)
	}
	all := strings.Fields(regexp.MustCompile(`parts=\(([^)]*)\)`).FindStringSubmatch(readFile(t, "../build/test-all.sh"))[1])
	slices.Sort(parts)
	slices.Sort(all)
	if !slices.Equal(parts, all) || len(all) < 15 {
		t.Errorf("ci.yml runs the parts %q, make test-all runs %q", parts, all)
	}
	event, ok := release.On[0].(*actionlint.WebhookEvent)
	if !ok || len(release.On) != 1 || len(event.Tags.Values) != 1 || event.Tags.Values[0].Value != "v[0-9]+.[0-9]+.[0-9]+" || event.Branches != nil {
		t.Errorf("a release begins for %+v", release.On[0])
	}
	if n := strings.Count(readFile(t, "../.github/workflows/release.yml"), "TAG: ${{ github.ref_name }}"); n != 3 {
		t.Errorf("%d steps get the tag", n)
	}
}
