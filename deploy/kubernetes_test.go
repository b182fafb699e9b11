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
var everything = []string{"--set", "secret=mine,replicas=3,initImage.name=,topKeys=10,storageClass=fast,policies=api QUOTA 1 1s",
	"--set", "gateway.replicas=2,gateway.settings.BUDGET=100", "--set", "monitoring.exporter.name=exporter,monitoring.exporter.digest=" + digest + ",monitoring.serviceMonitor=true,monitoring.rules=true,monitoring.runbooks=https://docs.test"}

// The chart renders objects of the right form, with the least and with all values. It refuses unknown values, and a server
// without a password. Mistakes in its objects are found.
func TestChart_schemas(t *testing.T) {
	least := slices.Sorted(maps.Keys(render(t, "--set", "password=a b\"c")))
	assert.Equal(t, "ConfigMap limits, NetworkPolicy limits, PodDisruptionBudget limits, Secret limits, Service limits, Service limits-nodes, StatefulSet limits", strings.Join(least, ", "))
	assert.Len(t, render(t, everything...), len(least)-1+3+6)
	for want, args := range map[string][]string{"set password": nil, "passwort": {"--set", "password=x,passwort=y"}, "replicas": {"--set", "password=x,replicas=two"}, "digest": {"--set", "password=x,image.digest=0a"}} {
		_, err := helm(t, args...)
		assert.ErrorContains(t, err, want, "%q", args)
	}
	for _, wrong := range strings.Fields("maxmemory=abc storage=big resources.limits.memory=lots resources.memory=1Gi tolerations=a nodeSelector.a=null,nodeSelector.b.c=d " +
		"gateway.settings.a=b gateway.settings.A.b=c gateway.name=A imagePullSecrets[0].nam=a gateway.affinity=a podLabels=a networkPolicy.clients[0]=a secret=A monitoring.runbooks=docs") {
		_, err := helm(t, "--set", "password=x", "--set", wrong)
		assert.ErrorContains(t, err, strings.Split(strings.Split(wrong, "=")[0], "[")[0][:4], wrong)
	}
	text, _ := helm(t, "--set", "password=x")
	for _, wrong := range []string{"\n  replica: 1", "\n  replicas: {x: y}"} {
		_, err := decode(strings.TrimPrefix(strings.Replace(text, "\n  replicas: 1", wrong, 1), "---\n"))
		assert.Error(t, err, wrong)
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
	assert.Contains(t, rules[0].Annotations["runbook_url"], "https://docs.test/operating.md#")
	assert.Equal(t, readFile(t, "monitoring/exporter.lua"), all["ConfigMap limits-monitoring"].(*corev1.ConfigMap).Data["exporter.lua"])
	for _, line := range []string{loadmodule + "\n", "gothrottle.policies \"api QUOTA 1 1s\"\n", "gothrottle.top-keys 10\n", "appendonly yes"} {
		assert.Contains(t, all["ConfigMap limits"].(*corev1.ConfigMap).Data["redis.conf"], line)
	}
	assert.Equal(t, nameOf(t, "INIT"), pod.InitContainers[0].Image)
	assert.Equal(t, nameOf(t, "server"), pod.Containers[0].Image)
	assert.Empty(t, full.Spec.Template.Spec.InitContainers)
	assert.Equal(t, "exporter@"+digest, full.Spec.Template.Spec.Containers[1].Image)
	assert.EqualValues(t, 3, *full.Spec.Replicas)
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
// than they need. They find the server, whose policy lets them in, and its password. What is configured arrives.
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
	assert.Contains(t, m["ConfigMap limits-gateway"].(*corev1.ConfigMap).Data["rules.yaml"], "domain: web\n")
	c := pod.Containers[0]
	confined(t, pod.SecurityContext, c)
	password := c.Env[1].ValueFrom.SecretKeyRef
	assert.Equal(t, "x", m["Secret "+password.Name].(*corev1.Secret).StringData[password.Key])
	assert.Contains(t, m, "Service "+strings.TrimSuffix(c.Env[0].Value, ":6379"))
	assert.Equal(t, nameOf(t, "GATEWAY"), c.Image)
	assert.Contains(t, m, "ConfigMap "+pod.Volumes[0].ConfigMap.Name)
	assert.Contains(t, c.Env, corev1.EnvVar{Name: "BUDGET", Value: "100"})
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

// Pods run where the values say, and carry what they say beside the chart's own labels.
func TestChart_scheduling(t *testing.T) {
	const values = "podLabels.team=web,podAnnotations.a=b,imagePullSecrets[0].name=pull,priorityClassName=high,nodeSelector.disk=fast,tolerations[0].key=t," +
		"affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1,topologySpreadConstraints[0].topologyKey=zone"
	m := render(t, "--set", "password=x,gateway.replicas=1", "--set", values, "--set", "gateway."+strings.ReplaceAll(values, ",", ",gateway."))
	set, gateway := m["StatefulSet limits"].(*appsv1.StatefulSet), m["Deployment limits-gateway"].(*appsv1.Deployment)
	assert.Subset(t, set.Spec.Template.Labels, set.Spec.Selector.MatchLabels)
	assert.Subset(t, gateway.Spec.Template.Labels, gateway.Spec.Selector.MatchLabels)
	for _, pod := range []corev1.PodTemplateSpec{set.Spec.Template, gateway.Spec.Template} {
		assert.Equal(t, []string{"web", "b"}, []string{pod.Labels["team"], pod.Annotations["a"]})
		s := pod.Spec
		assert.Equal(t, []string{"pull", "high", "fast", "t", "zone"}, []string{s.ImagePullSecrets[0].Name, s.PriorityClassName, s.NodeSelector["disk"], s.Tolerations[0].Key, s.TopologySpreadConstraints[0].TopologyKey})
		assert.EqualValues(t, 1, s.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight)
	}
}

// The packed chart has the files that its templates read, and no others.
func TestChart_packed(t *testing.T) {
	program, folder := os.Getenv("GOTHROTTLE_HELM"), t.TempDir()
	if program == "" {
		t.Skip("build/test-deploy.sh runs this test")
	}
	out, err := exec.Command(program, "package", "chart", "--destination", folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command("sh", "-c", "tar -tzf "+folder+"/*.tgz | cut -d / -f 2- | grep -v ^templates/ | sort").Output()
	require.NoError(t, err)
	assert.Equal(t, strings.Fields(`.helmignore Chart.yaml envoy-ai-gateway.yaml gateway/alerts.yml monitoring/alerts.yml monitoring/exporter.lua
		monitoring/prometheus.yml values.schema.json values.yaml`), strings.Fields(string(out)))
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
