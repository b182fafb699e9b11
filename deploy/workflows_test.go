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
// builds in. Two jobs may write: one makes the draft of a release, the other publishes the page. They run no code of the
// repository. Actions are GitHub's, pinned by commit. Each job has a time limit.
func TestWorkflows_runTheScripts(t *testing.T) {
	image := nameOf(t, "GO_IMAGE")
	ours := regexp.MustCompile(`^(build/[a-z-]+\.sh|make package|docker run .* ` + image + ` (\.ci/run |build/[a-z-]+\.sh$))`)
	jobs := maps.Clone(readWorkflow(t, "ci.yml").Jobs)
	maps.Copy(jobs, readWorkflow(t, "release.yml").Jobs)
	maps.Copy(jobs, readWorkflow(t, "pages.yml").Jobs)
	maps.Copy(jobs, readWorkflow(t, "nightly.yml").Jobs)
	for id, job := range jobs {
		writes := id == "draft" || id == "publish"
		for _, step := range job.Steps {
			switch e := step.Exec.(type) {
			case *actionlint.ExecRun:
				if run := e.Run.Value; ours.MatchString(run) == writes || writes && strings.Contains(run, "build/") {
					t.Errorf("%s runs %s", id, run)
				}
			case *actionlint.ExecAction:
				if !regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`).MatchString(e.Uses.Value) {
					t.Errorf("%s uses %s", id, e.Uses.Value)
				}
			}
		}
		if job.TimeoutMinutes == nil || (job.Permissions != nil) != writes || (id == "package" || id == "page") && job.Container.Image.Value != image {
			t.Errorf("%s has no time limit, or other permissions or another image than it should", id)
		}
	}
}

// The workflows may read the repository and no more. ci.yml runs every part of make test-all. release.yml begins for the
// tags that build/version.sh accepts, and hands the tag to it.
func TestWorkflows_events(t *testing.T) {
	ci, release := readWorkflow(t, "ci.yml"), readWorkflow(t, "release.yml")
	for _, w := range []*actionlint.Workflow{ci, release, readWorkflow(t, "pages.yml"), readWorkflow(t, "nightly.yml")} {
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
