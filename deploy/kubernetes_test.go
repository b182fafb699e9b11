// Package deploy holds the files that ship beside the module, and the tests that run them.
package deploy

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

const loadmodule = "loadmodule /usr/lib/redis/modules/gothrottle.so"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// nameOf returns the default that build/lib.sh gives to an image's name, or the name of a base image in the Dockerfile.
func nameOf(t *testing.T, image string) string {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^(?:FROM ([^@\s]+)\S* AS ` + image + `|` + image + `=\$\{\w+:-(.*)\})$`)
	m := pattern.FindStringSubmatch(readFile(t, "../build/lib.sh") + readFile(t, "../Dockerfile"))
	require.NotNil(t, m, "there is no image %s", image)
	return m[1] + m[2]
}

// helm returns what helm template prints, or its error. build/test-deploy.sh names helm.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("GOTHROTTLE_HELM")
	if program == "" {
		t.Skip("build/test-deploy.sh runs this test")
	}
	cmd := exec.Command(program, append([]string{"template", "limits", "chart", "--kube-version", "1.34.0"}, args...)...)
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("helm %q: %w\n%s", args, err, wrong.String())
	}
	return string(out), err
}

// decode returns the objects of a manifest by kind and name. It decodes as kubectl does with strict validation: a kind or
// field that Kubernetes or the operator of Prometheus does not know, or a value of a wrong type, is an error.
func decode(text string) (map[string]runtime.Object, error) {
	scheme, all := runtime.NewScheme(), map[string]runtime.Object{}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object, kind, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			return nil, err
		}
		all[kind.Kind+" "+object.(metav1.Object).GetName()] = object
	}
	return all, nil
}

// render returns the objects of the chart.
func render(t *testing.T, args ...string) map[string]runtime.Object {
	t.Helper()
	text, err := helm(t, args...)
	require.NoError(t, err)
	all, err := decode(strings.TrimPrefix(text, "---\n"))
	require.NoError(t, err, "%q: %s", args, text)
	return all
}

var digest = "sha256:" + strings.Repeat("0a", 32)

// everything are the values that switch on what the chart has.
var everything = []string{"--set", "secret=mine,initImage.name=", "--set", "gateway.replicas=2,monitoring.exporter.name=exporter,monitoring.serviceMonitor=true,monitoring.rules=true"}

// The chart renders objects of the right form, with the least and with all values. It refuses a server without a
// password. Mistakes in its objects are found.
func TestChart_schemas(t *testing.T) {
	least := slices.Sorted(maps.Keys(render(t, "--set", "password=a b\"c")))
	assert.Equal(t, "ConfigMap limits, NetworkPolicy limits, PodDisruptionBudget limits, Secret limits, Service limits, Service limits-nodes, StatefulSet limits", strings.Join(least, ", "))
	assert.Len(t, render(t, everything...), len(least)-1+3+6)
	_, err := helm(t)
	assert.ErrorContains(t, err, "set password")
	text, _ := helm(t, "--set", "password=x")
	for _, wrong := range []string{"\n  replica: 1", "\n  replicas: {x: y}"} {
		_, err := decode(strings.TrimPrefix(strings.Replace(text, "\n  replicas: 1", wrong, 1), "---\n"))
		assert.Error(t, err, wrong)
	}
}

// The Services, the budget and the policy select the pods. The containers have the images that make image builds and no
// more rights than they need. TestDocker_podOfTheChart tries the rest.
func TestChart_fitsTogether(t *testing.T) {
	m, all := render(t, "--set", "password=x"), render(t, everything...)
	set, full := m["StatefulSet limits"].(*appsv1.StatefulSet), all["StatefulSet limits"].(*appsv1.StatefulSet)
	pod, labels := set.Spec.Template.Spec, set.Spec.Template.Labels
	nodes, master := m["Service limits-nodes"].(*corev1.Service), m["Service limits"].(*corev1.Service)
	for _, selector := range []map[string]string{set.Spec.Selector.MatchLabels, nodes.Spec.Selector,
		m["PodDisruptionBudget limits"].(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels, m["NetworkPolicy limits"].(*networkingv1.NetworkPolicy).Spec.PodSelector.MatchLabels} {
		assert.Equal(t, labels, selector)
	}
	assert.Equal(t, nodes.Name, set.Spec.ServiceName)
	assert.Equal(t, "limits-0", master.Spec.Selector["statefulset.kubernetes.io/pod-name"])
	assert.EqualValues(t, 6379, master.Spec.Ports[0].Port)
	monitor := all["ServiceMonitor limits"].(*monitoringv1.ServiceMonitor)
	assert.Subset(t, nodes.Labels, monitor.Spec.Selector.MatchLabels)
	assert.Len(t, monitor.Spec.Endpoints[0].MetricRelabelConfigs, strings.Count(readFile(t, "monitoring/prometheus.yml"), "- source_labels"))
	rules := all["PrometheusRule limits"].(*monitoringv1.PrometheusRule).Spec.Groups[0].Rules
	assert.Len(t, rules, strings.Count(readFile(t, "monitoring/alerts.yml"), "- alert:"))
	assert.Equal(t, nameOf(t, "INIT"), pod.InitContainers[0].Image)
	assert.Equal(t, nameOf(t, "server"), pod.Containers[0].Image)
	assert.Empty(t, full.Spec.Template.Spec.InitContainers)
	for _, c := range append(append(pod.InitContainers, pod.Containers...), full.Spec.Template.Spec.Containers...) {
		confined(t, pod.SecurityContext, c)
	}
}

// confined fails if a container may do what it need not.
func confined(t *testing.T, pod *corev1.PodSecurityContext, c corev1.Container) {
	t.Helper()
	yes, no, s, memory := true, false, c.SecurityContext, c.Resources.Limits.Memory()
	assert.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, s.Capabilities, c.Name)
	assert.Equal(t, &yes, s.ReadOnlyRootFilesystem, c.Name)
	assert.Equal(t, &no, s.AllowPrivilegeEscalation, c.Name)
	if pod != nil {
		assert.Equal(t, &yes, pod.RunAsNonRoot, c.Name)
		assert.NotZero(t, *pod.RunAsUser, c.Name)
	}
	assert.False(t, memory.IsZero() || c.Resources.Requests.Memory().Cmp(*memory) > 0, "%s has no limit of memory, or requests more", c.Name)
}

// The gateway's Service, budget and monitor select its pods, which have the image that make image builds and no more rights
// than they need. They find the server, whose policy lets them in, and its password.
func TestChart_gateway(t *testing.T) {
	m := render(t, append([]string{"--set", "password=x"}, everything[2:]...)...)
	set, service := m["Deployment limits-gateway"].(*appsv1.Deployment), m["Service limits-gateway"].(*corev1.Service)
	monitor := m["ServiceMonitor limits-gateway"].(*monitoringv1.ServiceMonitor)
	pod, labels := set.Spec.Template.Spec, set.Spec.Template.Labels
	for _, selector := range []map[string]string{set.Spec.Selector.MatchLabels, service.Spec.Selector, service.Labels, monitor.Spec.Selector.MatchLabels,
		m["PodDisruptionBudget limits-gateway"].(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels,
		m["NetworkPolicy limits"].(*networkingv1.NetworkPolicy).Spec.Ingress[0].From[1].PodSelector.MatchLabels} {
		assert.Equal(t, labels, selector)
	}
	rules := m["PrometheusRule limits-gateway"].(*monitoringv1.PrometheusRule).Spec.Groups[0].Rules
	assert.Len(t, rules, strings.Count(readFile(t, "gateway/alerts.yml"), "- alert:"))
	c := pod.Containers[0]
	confined(t, pod.SecurityContext, c)
	password := c.Env[0].ValueFrom.SecretKeyRef
	assert.Equal(t, "x", m["Secret "+password.Name].(*corev1.Secret).StringData[password.Key])
	assert.Contains(t, c.Env, corev1.EnvVar{Name: "REDIS_AUTH", Value: "default:$(" + c.Env[0].Name + ")"})
	assert.Contains(t, c.Env, corev1.EnvVar{Name: "REDIS_URL", Value: m["Service limits"].(*corev1.Service).Name + ":6379"})
	assert.Equal(t, nameOf(t, "GATEWAY"), c.Image)
	assert.Contains(t, m, "ConfigMap "+pod.Volumes[0].ConfigMap.Name)
	assert.Contains(t, c.Ports, corev1.ContainerPort{Name: monitor.Spec.Endpoints[0].TargetPort.StrVal, ContainerPort: 6070})
	for _, port := range service.Spec.Ports {
		assert.Contains(t, c.Ports, corev1.ContainerPort{Name: port.TargetPort.StrVal, ContainerPort: port.Port})
	}
}

// With the values for Envoy AI Gateway the gateway has the names that Envoy and the controller know, and no rules of its own.
func TestChart_envoyAIGateway(t *testing.T) {
	m := render(t, "--namespace", "envoy-gateway-system", "--values", "chart/envoy-ai-gateway.yaml", "--set", "password=x")
	set, service := m["Deployment envoy-ai-gateway-ratelimit"].(*appsv1.Deployment), m["Service envoy-ai-gateway-ratelimit"].(*corev1.Service)
	assert.Equal(t, set.Spec.Template.Labels, service.Spec.Selector)
	assert.EqualValues(t, 8081, service.Spec.Ports[1].Port)
	assert.Empty(t, set.Spec.Template.Spec.Volumes)
	assert.NotContains(t, m, "ConfigMap envoy-ai-gateway-ratelimit")
	for _, one := range []corev1.EnvVar{{Name: "REDIS_URL", Value: "limits:6379"}, {Name: "CONFIG_TYPE", Value: "GRPC_XDS_SOTW"}, {Name: "CONFIG_GRPC_XDS_NODE_ID", Value: "envoy-ai-gateway-ratelimit"}} {
		assert.Contains(t, set.Spec.Template.Spec.Containers[0].Env, one)
	}
}

// The packed chart has what git has of it and the files that its templates read, whatever else lies there.
func TestChart_packed(t *testing.T) {
	program, folder := os.Getenv("GOTHROTTLE_HELM"), t.TempDir()
	if program == "" {
		t.Skip("build/test-deploy.sh runs this test")
	}
	const pack = `cp -R chart gateway monitoring "$1" && cd "$1" && touch chart/.env chart/values.yaml.orig chart/templates/x.yaml~ gateway/x_test.yml monitoring/x.go
		"$2" package chart && tar -tzf *.tgz | cut -d / -f 2- | sort`
	out, err := exec.Command("sh", "-ec", pack, "sh", folder, program).Output()
	require.NoError(t, err)
	_, packed, _ := strings.Cut(string(out), ".tgz\n")
	want, err := exec.Command("sh", "-c", `(git ls-files chart | grep -v -e /\\. -e '/[a-z]*$'; grep -rhoE '(gateway|monitoring)/[a-z]+\.[a-z]+' chart/templates) | sed s,^chart/,, | sort -u`).Output()
	require.NoError(t, err)
	assert.Equal(t, string(want), packed)
}

// The values for Valkey's chart are fields that the chart knows, and load the module.
func TestValkey_values(t *testing.T) {
	var values struct { // the fields of these names in the chart's own values
		ExtraInitContainers []corev1.Container   `json:"extraInitContainers"`
		ExtraVolumes        []corev1.Volume      `json:"extraVolumes"`
		ExtraVolumeMounts   []corev1.VolumeMount `json:"extraVolumeMounts"`
		ValkeyConfig        string               `json:"valkeyConfig"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(readFile(t, "helm/valkey-values.yaml")), &values))
	first, mount := values.ExtraInitContainers[0], values.ExtraVolumeMounts[0]
	assert.Equal(t, nameOf(t, "INIT"), first.Image)
	assert.Equal(t, loadmodule+"\n", values.ValkeyConfig)
	assert.Equal(t, loadmodule, "loadmodule "+mount.MountPath+"/gothrottle.so")
	assert.Equal(t, values.ExtraVolumes[0].Name, mount.Name)
	assert.Equal(t, []corev1.VolumeMount{{Name: mount.Name, MountPath: first.Args[0]}}, first.VolumeMounts)
	confined(t, nil, first)
}
