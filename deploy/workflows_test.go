package deploy

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is the part of a workflow that the rules are about. build/test-deploy.sh has actionlint check the whole.
type workflow struct {
	Permissions map[string]string
	Concurrency *struct{}
	Jobs        map[string]struct {
		Minutes     int `json:"timeout-minutes"`
		Permissions map[string]string
		Container   struct{ Image string }
		Strategy    struct{ Matrix struct{ Parts []string } }
		Steps       []struct{ Run, Uses string }
	}
}

// The workflows run .ci/run, make package and scripts of build, and nothing of their own, in the image that the Dockerfile
// builds in: each part of make test-all once. They may read the repository and no more, but for two jobs: one makes the draft
// of a release, the other publishes the page. These run no code of the repository. Actions are GitHub's, pinned by commit. Each
// job has a time limit.
func TestWorkflows_runTheScripts(t *testing.T) {
	image, jobs, parts := nameOf(t, "go"), 0, []string(nil)
	ours := regexp.MustCompile(`^(build/[a-z-]+\.sh|make package|docker run .* ` + image + ` (\.ci/run |build/[a-z-]+\.sh$))`)
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	files, _ := filepath.Glob("../.github/workflows/*.yml")
	for _, file := range files {
		var w workflow
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &w); err != nil {
			t.Fatal(file, err)
		}
		if w.Concurrency == nil || !maps.Equal(w.Permissions, map[string]string{"contents": "read"}) {
			t.Errorf("%s may write, or run twice at once", file)
		}
		for id, job := range w.Jobs {
			jobs++
			parts = append(parts, strings.Fields(strings.Join(job.Strategy.Matrix.Parts, " "))...)
			writes := id == "draft" || id == "publish"
			for _, step := range job.Steps {
				if step.Run != "" && (ours.MatchString(step.Run) == writes || writes && strings.Contains(step.Run, "build/")) {
					t.Errorf("%s runs %s", id, step.Run)
				}
				if step.Run == "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s uses %s", id, step.Uses)
				}
			}
			if job.Minutes == 0 || (job.Permissions != nil) != writes || (id == "package" || id == "page") && job.Container.Image != image {
				t.Errorf("%s has no time limit, or other permissions or another image than it should", id)
			}
		}
	}
	all := strings.Fields(regexp.MustCompile(`parts=\(([^)]*)\)`).FindStringSubmatch(readFile(t, "../build/test-all.sh"))[1])
	slices.Sort(parts)
	slices.Sort(all)
	if !slices.Equal(parts, all) || len(all) < 15 || jobs < 10 {
		t.Errorf("%d jobs run the parts %q, make test-all runs %q", jobs, parts, all)
	}
}

// A release begins for the tags that build/version.sh accepts, and hands the tag to it.
func TestWorkflows_release(t *testing.T) {
	release := readFile(t, "../.github/workflows/release.yml")
	if !strings.Contains(release, "\non:\n  push:\n    tags: ['v[0-9]+.[0-9]+.[0-9]+']\n\n") || strings.Count(release, "TAG: ${{ github.ref_name }}") != 3 {
		t.Error("release.yml begins for other tags, or one of its steps has no tag")
	}
}
