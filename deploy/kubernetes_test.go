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
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nameOf returns the default that build/lib.sh gives to an image's name, or the name of a base image in the Dockerfile.
func nameOf(t *testing.T, image string) string {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^(?:FROM ([^@\s]+)\S* AS ` + image + `|` + image + `=\$\{\w+:-(.*)\})$`)
	m := pattern.FindStringSubmatch(readFile(t, "../build/lib.sh") + readFile(t, "../Dockerfile"))
	if m == nil {
		t.Fatalf("there is no image %s", image)
	}
	return m[1] + m[2]
}

// helm returns what helm template prints, or its error. build/test-deploy.sh names helm.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("GOTHROTTLE_HELM")
	if program == "" {
		t.Skip("build/test-deploy.sh runs this test")
	}
	cmd := exec.Command(program, append([]string{"template", "limits", "chart"}, args...)...)
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
	if err != nil {
		t.Fatal(err)
	}
	all, err := decode(strings.TrimPrefix(text, "---\n"))
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, text)
	}
	return all
}

var digest = "sha256:" + strings.Repeat("0a", 32)

// everything are the values that switch on what the chart has.
var everything = []string{"--set", "secret=mine,replicas=3,initImage.name=,topKeys=10,storageClass=fast,policies=api QUOTA 1 1s",
	"--set", "monitoring.exporter.name=exporter,monitoring.exporter.digest=" + digest + ",monitoring.serviceMonitor=true,monitoring.rules=true,monitoring.runbooks=https://docs.test"}

// The chart renders objects of the right form, with the least and with all values. It refuses unknown values, and a server
// without a password. Mistakes in its objects are found.
func TestChart_schemas(t *testing.T) {
	least := slices.Sorted(maps.Keys(render(t, "--set", "password=a b\"c")))
	if got := strings.Join(least, ", "); got != "ConfigMap limits, NetworkPolicy limits, PodDisruptionBudget limits, Secret limits, Service limits, Service limits-nodes, StatefulSet limits" {
		t.Errorf("the chart has %s", got)
	}
	if all := render(t, everything...); len(all) != len(least)-1+3 {
		t.Errorf("%d objects", len(all))
	}
	for want, args := range map[string][]string{"set password": nil, "passwort": {"--set", "password=x,passwort=y"}, "replicas": {"--set", "password=x,replicas=two"}, "digest": {"--set", "password=x,image.digest=0a"}} {
		if _, err := helm(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	text, _ := helm(t, "--set", "password=x")
	for _, wrong := range []string{"\n  replica: 1", "\n  replicas: {x: y}"} {
		if _, err := decode(strings.TrimPrefix(strings.Replace(text, "\n  replicas: 1", wrong, 1), "---\n")); err == nil {
			t.Errorf("%s is not found", wrong)
		}
	}
}

// The Services, the budget and the policy select the pods. The containers have the images that make image builds and no
// more rights than they need. What is configured arrives. TestDocker_podOfTheChart tries the rest.
func TestChart_fitsTogether(t *testing.T) {
	m, all := render(t, "--set", "password=x"), render(t, everything...)
	set, full := m["StatefulSet limits"].(*appsv1.StatefulSet), all["StatefulSet limits"].(*appsv1.StatefulSet)
	pod, labels := set.Spec.Template.Spec, set.Spec.Template.Labels
	nodes, master := m["Service limits-nodes"].(*corev1.Service), m["Service limits"].(*corev1.Service)
	for _, selector := range []map[string]string{set.Spec.Selector.MatchLabels, nodes.Spec.Selector,
		m["PodDisruptionBudget limits"].(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels, m["NetworkPolicy limits"].(*networkingv1.NetworkPolicy).Spec.PodSelector.MatchLabels} {
		if len(labels) == 0 || !maps.Equal(labels, selector) {
			t.Errorf("%v is selected, the pods are %v", selector, labels)
		}
	}
	if set.Spec.ServiceName != nodes.Name || master.Spec.Selector["statefulset.kubernetes.io/pod-name"] != "limits-0" || master.Spec.Ports[0].Port != 6379 {
		t.Errorf("the Services select %v and %s", master.Spec.Selector, set.Spec.ServiceName)
	}
	monitor := all["ServiceMonitor limits"].(*monitoringv1.ServiceMonitor)
	for name, value := range monitor.Spec.Selector.MatchLabels {
		if nodes.Labels[name] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, the Service has %v", name, value, nodes.Labels)
		}
	}
	if n := strings.Count(readFile(t, "monitoring/prometheus.yml"), "- source_labels"); len(monitor.Spec.Endpoints[0].MetricRelabelConfigs) != n {
		t.Errorf("%d relabellings, want %d", len(monitor.Spec.Endpoints[0].MetricRelabelConfigs), n)
	}
	rules := all["PrometheusRule limits"].(*monitoringv1.PrometheusRule).Spec.Groups[0].Rules
	if n := strings.Count(readFile(t, "monitoring/alerts.yml"), "- alert:"); len(rules) != n || !strings.HasPrefix(rules[0].Annotations["runbook_url"], "https://docs.test/operating.md#") {
		t.Errorf("%d alerts, want %d", len(rules), n)
	}
	if script := all["ConfigMap limits-monitoring"].(*corev1.ConfigMap).Data["exporter.lua"]; script != readFile(t, "monitoring/exporter.lua") {
		t.Errorf("the exporter runs %q", script)
	}
	for _, line := range []string{loadmodule + "\n", "gothrottle.policies \"api QUOTA 1 1s\"\n", "gothrottle.top-keys 10\n", "appendonly yes"} {
		if config := all["ConfigMap limits"].(*corev1.ConfigMap).Data["redis.conf"]; !strings.Contains(config, line) {
			t.Errorf("redis.conf lacks %s: %s", line, config)
		}
	}
	if pod.InitContainers[0].Image != nameOf(t, "INIT") || pod.Containers[0].Image != nameOf(t, "server") || len(full.Spec.Template.Spec.InitContainers) > 0 || full.Spec.Template.Spec.Containers[1].Image != "exporter@"+digest || *full.Spec.Replicas != 3 {
		t.Errorf("the images are %s and %s", pod.InitContainers[0].Image, pod.Containers[0].Image)
	}
	for _, c := range append(append(pod.InitContainers, pod.Containers...), full.Spec.Template.Spec.Containers...) {
		if err := confined(pod.SecurityContext, c); err != nil {
			t.Error(err)
		}
	}
}

// confined returns what a container may do that it need not.
func confined(pod *corev1.PodSecurityContext, c corev1.Container) error {
	s, yes := c.SecurityContext, func(b *bool) bool { return b != nil && *b }
	if len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 || !yes(s.ReadOnlyRootFilesystem) ||
		s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || pod != nil && (!yes(pod.RunAsNonRoot) || *pod.RunAsUser == 0) {
		return fmt.Errorf("%s is not confined", c.Name)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
		return fmt.Errorf("%s has no limit of memory, or requests more", c.Name)
	}
	return nil
}

// The gateway's Service finds its pods, which have the image that make image builds, no more rights than they need, and
// find the Service and the Secret of the chart, whose policy lets them in.
func TestGateway_fitsTheChart(t *testing.T) {
	m, err := decode(readFile(t, "kubernetes/gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	chart := render(t, "--set", "password=x")
	set, service := m["Deployment gothrottle-gateway"].(*appsv1.Deployment), m["Service gothrottle-gateway"].(*corev1.Service)
	pod, labels := set.Spec.Template.Spec, set.Spec.Template.Labels
	clients := chart["NetworkPolicy limits"].(*networkingv1.NetworkPolicy).Spec.Ingress[0].From[1].PodSelector.MatchLabels
	for _, selector := range []map[string]string{set.Spec.Selector.MatchLabels, service.Spec.Selector, clients} {
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("%v is selected, the pods are %v", selector, labels)
			}
		}
	}
	c := pod.Containers[0]
	if err := confined(pod.SecurityContext, c); err != nil {
		t.Error(err)
	}
	secret, found := chart["Secret "+c.Env[1].ValueFrom.SecretKeyRef.Name].(*corev1.Secret)
	if !found || secret.StringData[c.Env[1].ValueFrom.SecretKeyRef.Key] != "x" || chart["Service "+strings.TrimSuffix(c.Env[0].Value, ":6379")] == nil ||
		c.Image != nameOf(t, "GATEWAY") || m["ConfigMap "+pod.Volumes[0].ConfigMap.Name] == nil {
		t.Errorf("the container has the image %s, the environment %v and the volume %v", c.Image, c.Env, pod.Volumes[0])
	}
	for _, port := range service.Spec.Ports {
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == port.TargetPort.StrVal && p.ContainerPort == port.Port
		}) {
			t.Errorf("no container has the port %v", port)
		}
	}
}

// The values for Valkey's chart are fields that the chart knows, and load the module.
func TestValkey_values(t *testing.T) {
	var values struct { // the fields of these names in the chart's own values
		ExtraInitContainers []corev1.Container   `json:"extraInitContainers"`
		ExtraVolumes        []corev1.Volume      `json:"extraVolumes"`
		ExtraVolumeMounts   []corev1.VolumeMount `json:"extraVolumeMounts"`
		ValkeyConfig        string               `json:"valkeyConfig"`
	}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "helm/valkey-values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	first, mount := values.ExtraInitContainers[0], values.ExtraVolumeMounts[0]
	if first.Image != nameOf(t, "INIT") || values.ValkeyConfig != loadmodule+"\n" || "loadmodule "+mount.MountPath+"/gothrottle.so" != loadmodule ||
		mount.Name != values.ExtraVolumes[0].Name || first.VolumeMounts[0].Name != mount.Name || first.VolumeMounts[0].MountPath != first.Args[0] {
		t.Errorf("Valkey's server does not load what the init container %s copies: it mounts %v", first.Image, mount)
	}
	if err := confined(nil, first); err != nil {
		t.Error(err)
	}
}
