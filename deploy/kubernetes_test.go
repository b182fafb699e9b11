package deploy

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	module     = "/usr/lib/redis/modules/gothrottle.so"
	loadmodule = "loadmodule " + module
)

// manifests is what kubernetes/gothrottle.yaml holds.
type manifests struct {
	config  corev1.ConfigMap
	service corev1.Service
	set     appsv1.StatefulSet
}

// readFile returns a file of this folder, or of the repository by a path that begins with "../".
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nameOf returns the default that build/lib.sh gives to an image's name.
func nameOf(t *testing.T, variable string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + variable + `=\$\{` + variable + `:-(.*)\}$`).FindStringSubmatch(readFile(t, "../build/lib.sh"))
	if m == nil {
		t.Fatalf("build/lib.sh has no %s", variable)
	}
	return m[1]
}

// decode decodes the documents of a file, which stand in the order of the fields of manifests. A field
// that Kubernetes does not know, or a value of a wrong type, is an error.
func decode(text string) (m manifests, err error) {
	documents := strings.Split(text, "\n---\n")
	if len(documents) != 3 {
		return m, fmt.Errorf("%d documents", len(documents))
	}
	for i, into := range []any{&m.config, &m.service, &m.set} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			return m, err
		}
	}
	for _, kind := range []struct {
		metav1.TypeMeta
		want string
	}{{m.config.TypeMeta, "v1 ConfigMap"}, {m.service.TypeMeta, "v1 Service"}, {m.set.TypeMeta, "apps/v1 StatefulSet"}} {
		if got := kind.APIVersion + " " + kind.Kind; got != kind.want {
			return m, fmt.Errorf("%s instead of %s", got, kind.want)
		}
	}
	return m, nil
}

// check returns what does not fit together.
func (m manifests) check(init, server string) error {
	pod := m.set.Spec.Template
	if len(pod.Spec.InitContainers) != 1 || len(pod.Spec.Containers) != 1 {
		return fmt.Errorf("%d init containers and %d containers", len(pod.Spec.InitContainers), len(pod.Spec.Containers))
	}
	redis := pod.Spec.Containers[0]
	ports := m.service.Spec.Ports
	command := strings.Join(redis.Command, " ")
	for wrong, is := range map[string]bool{
		"the set selects other pods":             !selects(m.set.Spec.Selector.MatchLabels, pod.Labels),
		"the service selects other pods":         !selects(m.service.Spec.Selector, pod.Labels),
		"the set names another service":          m.set.Spec.ServiceName != m.service.Name,
		"the service has another port":           len(ports) != 1 || ports[0].Port != 6379 || !hasPort(redis, ports[0].TargetPort.String()),
		"the server has another image":           redis.Image != server,
		"the configuration does not load":        !hasLine(m.config.Data["redis.conf"], loadmodule),
		"the server reads another configuration": command != "redis-server "+mountOf(redis, "config").MountPath+"/redis.conf",
		"the server does not keep its data":      !hasLine(m.config.Data["redis.conf"], "dir "+mountOf(redis, "data").MountPath),
		"the volume holds another configuration": !mountsConfig(pod.Spec, m.config.Name),
		"the server has no probes":               redis.ReadinessProbe == nil || redis.LivenessProbe == nil,
		"the pod has a token":                    pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken,
	} {
		if is {
			return fmt.Errorf("%s", wrong)
		}
	}
	spec := pod.Spec
	for _, claim := range m.set.Spec.VolumeClaimTemplates {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim.Name})
	}
	return checkModule(spec, pod.Spec.InitContainers[0], redis, init)
}

// checkModule returns what keeps the server from loading the module that the init container copies.
func checkModule(pod corev1.PodSpec, first, server corev1.Container, init string) error {
	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	for _, container := range []corev1.Container{first, server} {
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				return fmt.Errorf("%s mounts %s, which does not exist", container.Name, mount.Name)
			}
		}
		if err := confined(pod.SecurityContext, container); err != nil {
			return err
		}
	}
	if first.Image != init {
		return fmt.Errorf("the init container's image is %s, make image builds %s", first.Image, init)
	}
	from, to := mountAt(first, strings.Join(first.Args, " ")), mountAt(server, strings.TrimSuffix(module, "/gothrottle.so"))
	if from.Name == "" || from.Name != to.Name || from.ReadOnly || !to.ReadOnly {
		return fmt.Errorf("the init container copies into volume %q, the server loads from volume %q", from.Name, to.Name)
	}
	return nil
}

// confined returns what a container may do that it need not.
func confined(pod *corev1.PodSecurityContext, c corev1.Container) error {
	s := c.SecurityContext
	if s == nil || pod == nil {
		return fmt.Errorf("%s has no security context", c.Name)
	}
	yes := func(b *bool) bool { return b != nil && *b }
	drops := s.Capabilities != nil && len(s.Capabilities.Drop) == 1 && s.Capabilities.Drop[0] == "ALL" && len(s.Capabilities.Add) == 0
	if !drops || !yes(s.ReadOnlyRootFilesystem) || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		!yes(pod.RunAsNonRoot) && !yes(s.RunAsNonRoot) || pod.RunAsUser == nil || *pod.RunAsUser == 0 || pod.FSGroup == nil {
		return fmt.Errorf("%s is not confined", c.Name)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
		return fmt.Errorf("%s has no limit of memory, or requests more", c.Name)
	}
	return nil
}

func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

func hasPort(c corev1.Container, name string) bool {
	for _, port := range c.Ports {
		if port.Name == name && port.ContainerPort == 6379 {
			return true
		}
	}
	return false
}

func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == want {
			return true
		}
	}
	return false
}

func mountsConfig(pod corev1.PodSpec, name string) bool {
	for _, volume := range pod.Volumes {
		if volume.Name == "config" {
			return volume.ConfigMap != nil && volume.ConfigMap.Name == name
		}
	}
	return false
}

func mountOf(c corev1.Container, volume string) (found corev1.VolumeMount) {
	for _, mount := range c.VolumeMounts {
		if mount.Name == volume {
			found = mount
		}
	}
	return found
}

func mountAt(c corev1.Container, path string) (found corev1.VolumeMount) {
	for _, mount := range c.VolumeMounts {
		if mount.MountPath == path {
			found = mount
		}
	}
	return found
}

// mistake is a change of a file, and a word of the error that tells of the change.
type mistake struct{ old, new, says string }

// findsMistakes checks the text of a file as it is, and then with each mistake.
func findsMistakes(t *testing.T, text string, mistakes []mistake, check func(text string) error) {
	t.Helper()
	if err := check(text); err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		changed := strings.Replace(text, m.old, m.new, 1)
		if changed == text {
			t.Errorf("the file has no %q", m.old)
		}
		if err := check(changed); err == nil || !strings.Contains(err.Error(), m.says) {
			t.Errorf("%q instead of %q: %v, want %q", m.new, m.old, err, m.says)
		}
	}
}

// The manifests are what Kubernetes knows, and they fit together and to the images that make image
// builds.
func TestKubernetes_manifestsFitTogether(t *testing.T) {
	init, server := nameOf(t, "INIT"), nameOf(t, "SERVER_IMAGE")
	findsMistakes(t, readFile(t, "kubernetes/gothrottle.yaml"), []mistake{
		{"replicas: 1", "replica: 1", "replica"},
		{"replicas: 1", "replicas: one", "replicas"},
		{"sizeLimit: 32Mi", "sizeLimit: 32Megs", "quantit"},
		{"periodSeconds: 5", "periodSeconds: 5s", "periodSeconds"},
		{"kind: Service", "kind: Servise", "Servise"},
		{"matchLabels: {app.kubernetes.io/name: gothrottle}", "matchLabels: {app.kubernetes.io/name: x}", "the set selects"},
		{"selector: {app.kubernetes.io/name: gothrottle}", "selector: {app.kubernetes.io/name: x}", "the service selects"},
		{"serviceName: gothrottle", "serviceName: x", "another service"},
		{"targetPort: redis", "targetPort: x", "another port"},
		{"containerPort: 6379", "containerPort: 6380", "another port"},
		{"image: " + init, "image: x:dev", "make image builds"},
		{"image: " + server, "image: redis:x", "another image"},
		{loadmodule, "# " + loadmodule, "does not load"},
		{"redis-server, /etc/redis/redis.conf", "redis-server, /etc/redis.conf", "another configuration"},
		{"configMap: {name: gothrottle}", "configMap: {name: x}", "holds another"},
		{"dir /data", "dir /tmp", "keep its data"},
		{"readinessProbe:", "startupProbe:", "no probes"},
		{"args: [/modules]", "args: [/other]", "copies into"},
		{"mountPath: /usr/lib/redis/modules", "mountPath: /usr/lib/redis", "copies into"},
		{"- name: module\n", "- name: modules\n", "which does not exist"},
		{"metadata: {name: data}", "metadata: {name: x}", "which does not exist"},
		{"drop: [ALL]", "drop: []", "not confined"},
		{"runAsUser: 1000", "runAsUser: 0", "not confined"},
		{"limits: {memory: 512Mi}", "limits: {memory: 12Mi}", "limit of memory"},
		{"automountServiceAccountToken: false", "", "token"},
	}, func(text string) error {
		m, err := decode(text)
		if err != nil {
			return err
		}
		return m.check(init, server)
	})
}

// operated is what kubernetes/valkey-operator.yaml uses of the operator's ValkeyCluster.
type operated struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		Shards     int32              `json:"shards"`
		Replicas   int32              `json:"replicas"`
		Containers []corev1.Container `json:"containers"`
	} `json:"spec"`
}

// The operator's cluster runs the image that its comment builds, and loads the module of this image.
func TestKubernetes_operatorLoadsTheModule(t *testing.T) {
	findsMistakes(t, readFile(t, "kubernetes/valkey-operator.yaml"), []mistake{
		{"shards: 3", "shard: 3", "shard"},
		{"args: [", "arg: [", "arg"},
		{"image: valkey-gothrottle:9", "image: x", "image"},
		{"--loadmodule, /usr", "--loadmodule, /opt", "args"},
		{"name: server", "name: x", "container"},
	}, func(text string) error {
		var o operated
		if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
			return err
		}
		if len(o.Spec.Containers) != 1 || o.Spec.Containers[0].Name != "server" || o.APIVersion+o.Kind != "valkey.io/v1alpha1ValkeyCluster" {
			return fmt.Errorf("another container or kind: %v", o)
		}
		server := o.Spec.Containers[0]
		if !strings.Contains(text, "#   make image IMAGE="+server.Image+" SERVER_IMAGE=valkey/valkey:9\n") {
			return fmt.Errorf("the comment does not build the image %s", server.Image)
		}
		if strings.Join(server.Args, " ") != "--"+loadmodule {
			return fmt.Errorf("the args are %q", server.Args)
		}
		return nil
	})
}
