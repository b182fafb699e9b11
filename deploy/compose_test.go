package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// loadCompose reads a compose file as Docker Compose does: with the schema, with the variables, and with
// the checks that what is named is there.
func loadCompose(text string, variables map[string]string) (*types.Project, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  folder,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(folder, "compose.yaml"), Content: []byte(text)}},
		Environment: variables,
	}, func(o *loader.Options) { o.SetProjectName("gothrottle", true) })
}

// The compose file follows the schema. It runs the image that make image builds, with the port on this
// machine only, and the image is built from this repository.
func TestCompose_fileFitsTheImage(t *testing.T) {
	image := nameOf(t, "IMAGE")
	findsMistakes(t, readFile(t, "compose.yaml"), []mistake{
		{"healthcheck:", "healthchecks:", "healthchecks"},
		{"interval: 5s", "interval: 5x", "interval"},
		{"read_only: true", "read_only: [x]", "read_only"},
		{"- data:/data", "- datum:/data", "datum"},
		{image, "x:dev", "runs x:dev"},
		{"127.0.0.1:$", "$", "published"},
		{":6379\n", ":6380\n", "published"},
		{"build: ..", "build: .", "built from"},
		{"unless-stopped", "never", "restart"},
		{"cap_drop: [ALL]", "", "not confined"},
	}, func(text string) error {
		project, err := loadCompose(text, map[string]string{})
		if err != nil {
			return err
		}
		s := project.Services["gothrottle"]
		if len(project.Services) != 1 || s.Image != image {
			return fmt.Errorf("%d services, the first runs %s", len(project.Services), s.Image)
		}
		if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Published != "6379" || s.Ports[0].Target != 6379 {
			return fmt.Errorf("published: %v", s.Ports)
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
			return fmt.Errorf("built from a folder without a Dockerfile: %w", err)
		}
		if s.Restart != "unless-stopped" || s.HealthCheck == nil || len(s.HealthCheck.Test) == 0 {
			return fmt.Errorf("restart %q, health check %v", s.Restart, s.HealthCheck)
		}
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 {
			return fmt.Errorf("the service is not confined")
		}
		return nil
	})
}
