package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
// builds in: each part of make test-all once. They may read the repository and no more, but for three jobs: one makes the
// draft of a release, one publishes the page, and one the Scorecard. These run no code of the repository. Actions are GitHub's
// and OpenSSF's, pinned by commit. Each job has a time limit.
func TestWorkflows_runTheScripts(t *testing.T) {
	image, jobs, parts := nameOf(t, "go"), 0, map[string][]string{}
	ours := regexp.MustCompile(`^(build/[a-z-]+\.sh|make package|docker run .* ` + image + ` (\.ci/run |build/[a-z-]+\.sh$))`)
	pinned := regexp.MustCompile(`^(actions|ossf)/[a-z-]+@[0-9a-f]{40}$`)
	files, _ := filepath.Glob("../.github/workflows/*.yml")
	for _, file := range files {
		var w workflow
		require.NoError(t, yaml.Unmarshal([]byte(readFile(t, file)), &w), file)
		assert.NotNil(t, w.Concurrency, "%s may run twice at the same time", file)
		assert.Equal(t, map[string]string{"contents": "read"}, w.Permissions, file)
		for id, job := range w.Jobs {
			jobs++
			name := filepath.Base(file)
			parts[name] = append(parts[name], strings.Fields(strings.Join(job.Strategy.Matrix.Parts, " "))...)
			writes := id == "draft" || id == "publish" || id == "scorecard"
			for _, step := range job.Steps {
				if step.Run != "" && (ours.MatchString(step.Run) == writes || writes && strings.Contains(step.Run, "build/")) {
					t.Errorf("%s runs %s", id, step.Run)
				}
				if strings.HasSuffix(step.Run, " build/test-"+id+".sh") {
					parts[name] = append(parts[name], id)
				}
				if step.Run == "" {
					assert.Regexp(t, pinned, step.Uses)
				}
			}
			assert.NotZero(t, job.Minutes, id)
			assert.Equal(t, writes, job.Permissions != nil, id)
			if id == "package" || id == "page" {
				assert.Equal(t, image, job.Container.Image, id)
			}
		}
	}
	for file, script := range map[string]string{"ci.yml": "test-all", "nightly.yml": "test-nightly"} {
		text := strings.NewReplacer("\\\n", "", "'", "").Replace(readFile(t, "../build/"+script+".sh"))
		all := strings.Fields(regexp.MustCompile(`\nrun_parts (.*)`).FindStringSubmatch(text)[1])
		assert.GreaterOrEqual(t, len(all), 8)
		assert.ElementsMatch(t, all, parts[file])
	}
	assert.GreaterOrEqual(t, jobs, 10)
}

// A release begins for the tags that build/version.sh accepts, and hands the tag to it.
func TestWorkflows_release(t *testing.T) {
	release := readFile(t, "../.github/workflows/release.yml")
	assert.True(t, strings.Contains(release, "\non:\n  push:\n    tags: ['v[0-9]+.[0-9]+.[0-9]+']\n\n"), "release.yml begins for other tags")
	assert.Equal(t, 3, strings.Count(release, "TAG: ${{ github.ref_name }}"))
}
