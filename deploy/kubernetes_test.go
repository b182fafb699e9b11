package deploy

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

const loadmodule = "loadmodule /usr/lib/redis/modules/gothrottle.so"

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

// manifests is what kubernetes/gothrottle.yaml holds, and with a Deployment for the set kubernetes/gateway.yaml.
type manifests struct {
	config     *corev1.ConfigMap
	service    *corev1.Service
	set        *appsv1.StatefulSet
	deployment *appsv1.Deployment
}

// decodeManifests decodes as kubectl does with strict validation: a kind or field that Kubernetes does not know, or a value
// of a wrong type, is an error.
func decodeManifests(text string) (m manifests, err error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return m, err
	}
	if err := appsv1.AddToScheme(scheme); err != nil {
		return m, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			return m, err
		}
		switch o := object.(type) {
		case *corev1.ConfigMap:
			m.config = o
		case *corev1.Service:
			m.service = o
		case *appsv1.StatefulSet:
			m.set = o
		case *appsv1.Deployment:
			m.deployment = o
		}
	}
	return m, nil
}

// helmValues is what helm/valkey-values.yaml may set: the fields of these names in the chart's own values. The chart was
// rendered with the file once, with the version that the file names. The chart is not in the repository.
type helmValues struct {
	ExtraInitContainers []corev1.Container   `json:"extraInitContainers"`
	ExtraVolumes        []corev1.Volume      `json:"extraVolumes"`
	ExtraVolumeMounts   []corev1.VolumeMount `json:"extraVolumeMounts"`
	ValkeyConfig        string               `json:"valkeyConfig"`
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

// The files have no field that their readers do not know, and no value of a wrong type. Both kinds of mistakes are found.
func TestFiles_followTheSchemas(t *testing.T) {
	for file, decode := range map[string]func(text string) error{
		"kubernetes/gothrottle.yaml":      func(text string) error { _, err := decodeManifests(text); return err },
		"kubernetes/gateway.yaml":         func(text string) error { _, err := decodeManifests(text); return err },
		"kubernetes/valkey-operator.yaml": func(text string) error { return yaml.UnmarshalStrict([]byte(text), &operated{}) },
		"helm/valkey-values.yaml":         func(text string) error { return yaml.UnmarshalStrict([]byte(text), &helmValues{}) },
	} {
		text := readFile(t, file)
		if err := decode(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, wrong := range []string{"\n$1${2}s:", "\n$1$2: {x: y}\n#"} {
			changed := regexp.MustCompile(`\n( *)(replicas|shards|extraVolumeMounts):`).ReplaceAllString(text, wrong)
			if changed == text || decode(changed) == nil {
				t.Errorf("%s: a mistake is not found", file)
			}
		}
	}
}

// The Service and the set find the pod. The pod, and the init container of the chart, have the images that make image
// builds and no more rights than they need. TestDocker_podOfTheManifests tries how the rest fits together.
func TestFiles_fitTogether(t *testing.T) {
	m, err := decodeManifests(readFile(t, "kubernetes/gothrottle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod, labels := m.set.Spec.Template.Spec, m.set.Spec.Template.Labels
	first, redis, port := pod.InitContainers[0], pod.Containers[0], m.service.Spec.Ports[0]
	if len(labels) == 0 || !maps.Equal(labels, m.set.Spec.Selector.MatchLabels) || !maps.Equal(labels, m.service.Spec.Selector) || m.set.Spec.ServiceName != m.service.Name {
		t.Errorf("the Service or the set selects other pods than %v", labels)
	}
	if port.Port != 6379 || port.TargetPort.StrVal != redis.Ports[0].Name || redis.Ports[0].ContainerPort != 6379 {
		t.Errorf("the Service has the port %v", port)
	}
	var chart helmValues
	var cluster operated
	for file, into := range map[string]any{"helm/valkey-values.yaml": &chart, "kubernetes/valkey-operator.yaml": &cluster} {
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), into); err != nil {
			t.Fatal(err)
		}
	}
	if c := cluster.Spec.Containers[0]; c.Name != "server" || strings.Join(c.Args, " ") != "--"+loadmodule {
		t.Errorf("the operator's server %s has the arguments %q", c.Name, c.Args)
	}
	chartFirst := chart.ExtraInitContainers[0]
	init, server := nameOf(t, "INIT"), nameOf(t, "SERVER_IMAGE")
	if first.Image != init || chartFirst.Image != init || redis.Image != server {
		t.Errorf("the images are %s, %s and %s, and make image builds %s for %s", first.Image, chartFirst.Image, redis.Image, init, server)
	}
	for _, c := range []corev1.Container{first, redis, chartFirst} {
		if err := confined(pod.SecurityContext, c); err != nil {
			t.Error(err)
		}
	}
	mount := chart.ExtraVolumeMounts[0]
	if chart.ValkeyConfig != loadmodule+"\n" || "loadmodule "+mount.MountPath+"/gothrottle.so" != loadmodule ||
		mount.Name != chart.ExtraVolumes[0].Name || chartFirst.VolumeMounts[0].Name != mount.Name || chartFirst.VolumeMounts[0].MountPath != chartFirst.Args[0] {
		t.Errorf("the chart's server does not load what the init container copies: it mounts %v", mount)
	}
}

// confined returns what a container may do that it need not.
func confined(pod *corev1.PodSecurityContext, c corev1.Container) error {
	s, yes := c.SecurityContext, func(b *bool) bool { return b != nil && *b }
	if len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 || !yes(s.ReadOnlyRootFilesystem) ||
		s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !yes(pod.RunAsNonRoot) || *pod.RunAsUser == 0 {
		return fmt.Errorf("%s is not confined", c.Name)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
		return fmt.Errorf("%s has no limit of memory, or requests more", c.Name)
	}
	return nil
}

// The gateway's Service finds its pods, which have the image that make image builds, no more rights than they need, and
// the Service of the server.
func TestFiles_gateway(t *testing.T) {
	m, err := decodeManifests(readFile(t, "kubernetes/gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := decodeManifests(readFile(t, "kubernetes/gothrottle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod, labels := m.deployment.Spec.Template.Spec, m.deployment.Spec.Template.Labels
	if !maps.Equal(labels, m.deployment.Spec.Selector.MatchLabels) || !maps.Equal(labels, m.service.Spec.Selector) {
		t.Errorf("the Service or the Deployment selects other pods than %v", labels)
	}
	c := pod.Containers[0]
	if err := confined(pod.SecurityContext, c); err != nil {
		t.Error(err)
	}
	if c.Image != nameOf(t, "GATEWAY") || c.Env[0].Value != server.service.Name+":6379" || pod.Volumes[0].ConfigMap.Name != m.config.Name {
		t.Errorf("the container has the image %s, the environment %v and the volume %v", c.Image, c.Env, pod.Volumes[0])
	}
	for _, port := range m.service.Spec.Ports {
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == port.TargetPort.StrVal && p.ContainerPort == port.Port
		}) {
			t.Errorf("no container has the port %v", port)
		}
	}
}
