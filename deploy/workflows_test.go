package deploy

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

const workflowsFolder = "../.github/workflows"

// readWorkflows returns GitHub's workflows by name of file. actionlint must not complain about one.
func readWorkflows(t *testing.T) map[string]*actionlint.Workflow {
	t.Helper()
	files, err := filepath.Glob(workflowsFolder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*actionlint.Workflow{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := linter.Lint(file, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		workflow, wrong := actionlint.Parse(text)
		for _, w := range append(found, wrong...) {
			t.Error(w)
		}
		if workflow == nil {
			t.Fatalf("%s is no workflow", file)
		}
		all[filepath.Base(file)] = workflow
	}
	return all
}

// The workflows run .ci/run, build/version.sh and make package, and nothing of their own; GitHub's program makes the
// draft of a release. Actions are GitHub's, pinned by commit.
func TestWorkflows_runTheScripts(t *testing.T) {
	const draft = `gh release create "$TAG" --draft --verify-tag --title "$TAG" --notes "See CHANGELOG.md." packages/*`
	inDebian := "docker run --rm --init --privileged --cgroupns host --volume /var/lib/docker " +
		`--volume "$PWD:/gothrottle" --workdir /gothrottle ` + goImage(t) + " .ci/run"
	want := map[string][]string{"ci.yml": {inDebian}, "release.yml": {"build/version.sh", draft, "make package"}}
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	for name, workflow := range readWorkflows(t) {
		var runs []string
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				switch e := step.Exec.(type) {
				case *actionlint.ExecRun:
					runs = append(runs, strings.TrimSpace(e.Run.Value))
				case *actionlint.ExecAction:
					if !pinned.MatchString(e.Uses.Value) {
						t.Errorf("%s uses %s", name, e.Uses.Value)
					}
				}
			}
		}
		slices.Sort(runs)
		if !slices.Equal(runs, want[name]) {
			t.Errorf("%s runs %q, want %q", name, runs, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

// A workflow may read the repository, and only the job that makes the draft may write. Each job has a
// time limit. The packages are built in the image that the Dockerfile builds in.
func TestWorkflows_limits(t *testing.T) {
	image := goImage(t)
	for name, workflow := range readWorkflows(t) {
		if got := scopes(workflow.Permissions); got != "contents: read" {
			t.Errorf("%s has the permissions %q", name, got)
		}
		if workflow.Concurrency == nil {
			t.Errorf("%s may run twice at once", name)
		}
		for id, job := range workflow.Jobs {
			if job.TimeoutMinutes == nil || job.TimeoutMinutes.Value <= 0 {
				t.Errorf("%s: %s has no time limit", name, id)
			}
			want := ""
			if id == "draft" {
				want = "contents: write"
			}
			if id == "package" && (job.Container == nil || job.Container.Image.Value != image) {
				t.Errorf("%s: %s does not run in %s", name, id, image)
			}
			if got := scopes(job.Permissions); got != want {
				t.Errorf("%s: %s has the permissions %q, want %q", name, id, got, want)
			}
		}
	}
}

// goImage is the image with Go that the Dockerfile names.
func goImage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`ARG GO_IMAGE=(\S+)`).FindStringSubmatch(string(text))
	if image == nil {
		t.Fatal("the Dockerfile names no image with Go")
	}
	return image[1]
}

func scopes(p *actionlint.Permissions) string {
	if p == nil {
		return ""
	}
	var all []string
	if p.All != nil {
		all = append(all, p.All.Value)
	}
	for name, scope := range p.Scopes {
		all = append(all, name+": "+scope.Value.Value)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// release.yml begins for the tags that build/version.sh accepts, and hands the tag to it.
func TestWorkflows_releaseChecksTheTag(t *testing.T) {
	workflow := readWorkflows(t)["release.yml"]
	if len(workflow.On) != 1 {
		t.Fatalf("%d events start a release", len(workflow.On))
	}
	event, ok := workflow.On[0].(*actionlint.WebhookEvent)
	if !ok || event.Tags == nil || len(event.Tags.Values) != 1 || event.Tags.Values[0].Value != "v[0-9]+.[0-9]+.[0-9]+" || event.Branches != nil {
		t.Errorf("a release begins for %+v", workflow.On[0])
	}
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			run, ok := step.Exec.(*actionlint.ExecRun)
			if !ok || run.Run.Value == "make package" {
				continue
			}
			if step.Env == nil || step.Env.Vars["tag"] == nil || step.Env.Vars["tag"].Value.Value != "${{ github.ref_name }}" {
				t.Errorf("line %d does not get the tag", step.Pos.Line)
			}
		}
	}
}
