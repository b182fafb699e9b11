package deploy

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// values is what helm/valkey-values.yaml may set: the fields of these names in the chart's own values.
// The chart was rendered with the file once, with the version that the file names. The chart is not in
// the repository, so the tests do not render it.
type values struct {
	ExtraInitContainers []corev1.Container   `json:"extraInitContainers"`
	ExtraVolumes        []corev1.Volume      `json:"extraVolumes"`
	ExtraVolumeMounts   []corev1.VolumeMount `json:"extraVolumeMounts"`
	ValkeyConfig        string               `json:"valkeyConfig"`
}

// The chart's pod has the module where its configuration loads the module from. The pod is confined as
// the chart's own values ask for.
func TestHelm_valuesFitTogether(t *testing.T) {
	init := nameOf(t, "INIT")
	findsMistakes(t, readFile(t, "helm/valkey-values.yaml"), []mistake{
		{"extraVolumes:", "extraVolume:", "extraVolume"},
		{"args: [/modules]", "arg: [/modules]", "arg"},
		{"args: [/modules]", "args: [/x]", "copies into"},
		{"emptyDir: {sizeLimit: 32Mi}", "emptyDir: {limit: 32Mi}", "limit"},
		{"image: " + init, "image: x:dev", "make image builds"},
		{"  - name: gothrottle\n    emptyDir", "  - name: x\n    emptyDir", "which does not exist"},
		{"mountPath: /usr/lib/redis/modules", "mountPath: /usr/lib", "copies into"},
		{loadmodule, "loadmodule /modules/gothrottle.so", "does not load"},
		{"drop: [ALL]", "drop: []", "not confined"},
	}, func(text string) error {
		var v values
		if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
			return err
		}
		if len(v.ExtraInitContainers) != 1 || v.ValkeyConfig != loadmodule+"\n" {
			return fmt.Errorf("the configuration does not load the module: %q", v.ValkeyConfig)
		}
		// The chart's defaults for the pod and its server.
		user := int64(1000)
		first := v.ExtraInitContainers[0]
		server := corev1.Container{Name: "valkey", SecurityContext: first.SecurityContext, Resources: first.Resources, VolumeMounts: v.ExtraVolumeMounts}
		pod := corev1.PodSpec{Volumes: v.ExtraVolumes, SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user, FSGroup: &user}}
		return checkModule(pod, first, server, init)
	})
}
