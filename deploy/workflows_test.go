package deploy

import (
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

// workflows returns GitHub's workflows by name. actionlint must not complain about them.
func workflows(t *testing.T) map[string]*actionlint.Workflow {
	t.Helper()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("../.github/workflows/*.yml")
	all := map[string]*actionlint.Workflow{}
	for _, file := range files {
		text := []byte(readFile(t, file))
		found, err := linter.Lint(file, text, nil)
		workflow, wrong := actionlint.Parse(text)
		if found = append(found, wrong...); err != nil || len(found) > 0 {
			t.Fatal(err, found)
		}
		all[workflow.Name.Value] = workflow
	}
	return all
}

// The workflows run .ci/run, make package and scripts of build, and nothing of their own, in the image that the Dockerfile
// builds in. They may read the repository and no more, but for two jobs: one makes the draft of a release, the other publishes
// the page. These run no code of the repository. Actions are GitHub's, pinned by commit. Each job has a time limit.
func TestWorkflows_runTheScripts(t *testing.T) {
	image, jobs := nameOf(t, "go"), 0
	ours := regexp.MustCompile(`^(build/[a-z-]+\.sh|make package|docker run .* ` + image + ` (\.ci/run |build/[a-z-]+\.sh$))`)
	for name, w := range workflows(t) {
		if w.Concurrency == nil || w.Permissions == nil || len(w.Permissions.Scopes) != 1 || w.Permissions.Scopes["contents"].Value.Value != "read" {
			t.Errorf("%s may write, or run twice at once", name)
		}
		for id, job := range w.Jobs {
			jobs++
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
	if jobs < 10 {
		t.Errorf("%d jobs", jobs)
	}
}

// ci.yml runs every part of make test-all. release.yml begins for the tags that build/version.sh accepts, and hands the tag to
// it.
func TestWorkflows_events(t *testing.T) {
	ci, release := workflows(t)["ci"], workflows(t)["release"]
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
