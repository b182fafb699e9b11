package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	servers "gothrottle/tests/server"
)

type object = map[string]any

// places says where Kubernetes wants each value: the kind, the path, and what surrounds it. podPlaces are those of either pod.
const podPlaces = `
replicas KIND spec/replicas
image KIND spec/template/spec/containers/POD/image
resources KIND spec/template/spec/containers/POD/resources
tls KIND spec/template/spec/volumes/tls/secret/secretName
podLabels KIND spec/template/metadata/labels
podAnnotations KIND spec/template/metadata/annotations
imagePullSecrets KIND spec/template/spec/imagePullSecrets
priorityClassName KIND spec/template/spec/priorityClassName
nodeSelector KIND spec/template/spec/nodeSelector
tolerations KIND spec/template/spec/tolerations
affinity KIND spec/template/spec/affinity
topologySpreadConstraints KIND spec/template/spec/topologySpreadConstraints`

var places = strings.NewReplacer("KIND", "StatefulSet", "POD", "redis").Replace(podPlaces) +
	strings.NewReplacer("\n", "\ngateway/", "KIND", "Deployment", "POD", "gateway").Replace(podPlaces) + `
gateway/name Deployment metadata/name
gateway/rules ConfigMap data/rules.yaml
gateway/settings Deployment spec/template/spec/containers/gateway/env
initImage StatefulSet spec/template/spec/initContainers/gothrottle/image
password Secret stringData/password
secret StatefulSet spec/template/spec/volumes/auth/secret/secretName
policies ConfigMap data/redis.conf gothrottle.policies "%"
topKeys ConfigMap data/redis.conf gothrottle.top-keys %
config ConfigMap data/redis.conf
maxmemory ConfigMap data/redis.conf maxmemory "%"
storage StatefulSet spec/volumeClaimTemplates/0/spec/resources/requests/storage
storageClass StatefulSet spec/volumeClaimTemplates/0/spec/storageClassName
networkPolicy/clients NetworkPolicy spec/ingress/0/from
monitoring/exporter StatefulSet spec/template/spec/containers/exporter/image
monitoring/serviceMonitor ServiceMonitor
monitoring/rules PrometheusRule
monitoring/runbooks PrometheusRule spec/groups/0/rules/0/annotations/runbook_url`

// drawer draws values that a schema admits. But one in odd, if that is not 0, is mostly of another kind, and spoils the whole.
type drawer struct {
	*rand.Rand
	definitions object
	odd         int
	spoiled     bool
}

func (d *drawer) follow(schema any) object {
	s, _ := schema.(object)
	if ref, ok := s["$ref"].(string); ok {
		return d.definitions[path.Base(ref)].(object)
	}
	return s
}

// text draws a text that matches the schema's pattern.
func (d *drawer) text(schema any) string {
	text, _ := d.follow(schema)["pattern"].(string)
	pattern := regexp.MustCompile(text)
	all := []string{"a", "b-1", "a.b/C_d", "10", "1e3", "true", "256mb", "1.5Gi", "x y", `"q'u\o:t`, "a: b # c", "{{ .Release }}", "https://docs.test/a", "A_B", "10.0.0.0/8", digest}
	fit := slices.DeleteFunc(all, func(text string) bool { return !pattern.MatchString(text) })
	return fit[d.IntN(len(fit))]
}

func (d *drawer) value(schema any) any {
	if d.odd > 0 && d.IntN(d.odd) == 0 {
		d.spoiled = true
		return []any{"ä:{ b", -1.0, 1.5, true, []any{"a"}, object{"a b": object{}}}[d.IntN(6)]
	}
	s := d.follow(schema)
	kind := s["type"]
	if all, ok := kind.([]any); ok {
		kind = all[d.IntN(len(all))]
	}
	if all, ok := s["enum"].([]any); ok {
		return all[d.IntN(len(all))]
	}
	switch kind {
	case "string":
		return d.text(s)
	case "boolean":
		return d.IntN(2) == 0
	case "integer", "number":
		low, _ := s["minimum"].(float64)
		high, bounded := s["maximum"].(float64)
		return []float64{low, low + 1, map[bool]float64{true: high, false: 2e6}[bounded]}[d.IntN(3)]
	case "array":
		all := []any{}
		for range d.IntN(3) {
			all = append(all, d.value(s["items"]))
		}
		return all
	}
	all, required := object{}, fmt.Sprint(s["required"])
	properties, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if d.IntN(2) == 0 || strings.Contains(required, name) {
			all[name] = d.value(properties[name])
		}
	}
	if more, ok := s["additionalProperties"].(object); ok {
		for range d.IntN(3) {
			all[d.text(s["propertyNames"])] = d.value(more)
		}
	}
	if d.odd > 0 && d.IntN(d.odd) == 0 {
		d.spoiled, all["other"] = true, "x"
	}
	if low, _ := s["minProperties"].(float64); len(all) < int(low) {
		return d.value(s)
	}
	return all
}

// at returns what is at a path; in a list, under a name or at its beginning.
func at(in any, path string) any {
	for part := range strings.SplitSeq(path, "/") {
		if list, ok := in.([]any); ok && len(list) > 0 {
			i := slices.IndexFunc(list, func(one any) bool { return one.(object)["name"] == part })
			in = list[max(i, 0)]
			continue
		}
		node, _ := in.(object)
		in = node[part]
	}
	return in
}

// leaves returns the texts and numbers in a value as JSON without quotes.
func leaves(value any) (all []string) {
	switch value := value.(type) {
	case object:
		for _, one := range value {
			all = append(all, leaves(one)...)
		}
		return all
	case []any:
		for _, one := range value {
			all = append(all, leaves(one)...)
		}
		return all
	}
	text, _ := json.Marshal(value)
	return []string{strings.Trim(string(text), `"`)}
}

// arrived fails unless each value is where Kubernetes wants it. Kinds that are switched off are left out.
func arrived(t *testing.T, values any, manifests string) {
	t.Helper()
	kinds := map[string][]object{}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var one object
		require.NoError(t, yaml.Unmarshal([]byte(document), &one), document)
		kinds[one["kind"].(string)] = append(kinds[one["kind"].(string)], one)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(places), "\n") {
		words := append(strings.SplitN(line, " ", 4), "", "")
		value, rendered, form := at(values, words[0]), "", strings.ReplaceAll(words[3], `"`, `\"`)
		for _, one := range kinds[words[1]] {
			text, _ := json.Marshal(at(one, words[2]))
			rendered += string(text)
		}
		off := strings.HasPrefix(words[0], "gateway/") && kinds["Deployment"] == nil
		if value == nil || rendered == "" || words[2] == "" || off {
			continue
		}
		for _, leaf := range leaves(value) {
			assert.Contains(t, rendered, strings.Replace(cmp.Or(form, "%"), "%", leaf, 1), words[0])
		}
	}
}

// Values that the schema admits make valid objects, in which each value is where Kubernetes wants it. The schema refuses what would
// make others: of values with odd parts, it refuses some and names them, and the rest make valid objects, too.
func TestChart_values(t *testing.T) {
	var schema, defaults object
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "chart/values.schema.json")), &schema))
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, "chart/values.yaml")), &defaults))
	compiled, err := jsonschema.NewCompiler().Compile("chart/values.schema.json")
	require.NoError(t, err)
	folder := t.TempDir()
	first, file := filepath.Join(folder, "first"), filepath.Join(folder, "values")
	require.NoError(t, os.WriteFile(first, []byte(`{"password": "x", "gateway": {"replicas": 2}, "monitoring": {"exporter": {"name": "e"}, "rules": true}}`), 0o600))
	template := func(values any) (text, manifests string, err error) {
		encoded, _ := json.Marshal(values)
		require.NoError(t, os.WriteFile(file, encoded, 0o600))
		manifests, err = helm(t, "--values", first, "--values", file)
		return string(encoded), strings.TrimPrefix(manifests, "---\n"), err
	}
	for i, right, refused := uint64(0), 0, 0; right < 140; i++ {
		d := &drawer{Rand: rand.New(rand.NewPCG(1, i)), definitions: schema["definitions"].(object), odd: int(i%64) * 5}
		values, whole := d.value(schema).(object)
		if !whole || d.odd > 0 && !d.spoiled {
			continue
		}
		if wrong := compiled.Validate(values); wrong != nil {
			require.True(t, d.spoiled, wrong)
			if refused++; refused%500 == 0 {
				_, _, err := template(values)
				require.ErrorContains(t, err, "values don't meet the specifications", "%v", wrong)
			}
			continue
		}
		right++
		text, manifests, err := template(values)
		require.NoError(t, err, text)
		_, err = decode(manifests)
		require.NoError(t, err, "%s: %s", text, manifests)
		arrived(t, values, manifests)
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.yaml", i)), []byte(manifests), 0o600))
	}
	out, err := exec.Command(os.Getenv("GOTHROTTLE_KUBECONFORM"), "-schema-location", os.Getenv("GOTHROTTLE_SCHEMAS")+"/{{.ResourceKind}}.json", "-skip", "ServiceMonitor,PrometheusRule", "-summary", folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, "Summary: [1-9]", string(out))
	odd, paths := object{"a b": object{}}, []string{}
	for name, one := range defaults {
		if group, ok := one.(object); ok && strings.Contains(places, "\n"+name+"/") {
			for inner := range group {
				group[inner], paths = odd, append(paths, name+"/"+inner)
			}
		} else {
			defaults[name], paths = odd, append(paths, name)
		}
	}
	_, _, err = template(defaults)
	for _, path := range paths {
		assert.ErrorContains(t, err, "at '/"+path)
		assert.Contains(t, places, "\n"+path+" ")
	}
}

const password = `a b"c:d`

// here returns what makes commands of a container on this machine: with its volumes' files in folders, and these replacements.
func here(t *testing.T, c corev1.Container, volumes map[string]map[string]string, replace ...string) func(words ...string) *exec.Cmd {
	t.Helper()
	folder := map[string]string{}
	slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(b.MountPath, a.MountPath) })
	for _, mount := range c.VolumeMounts {
		folder[mount.Name] = t.TempDir()
		replace = append(replace, " "+mount.MountPath, " "+folder[mount.Name], "="+mount.MountPath, "="+folder[mount.Name])
	}
	own := strings.NewReplacer(replace...)
	for volume, path := range folder {
		for name, text := range volumes[volume] {
			require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(own.Replace(text)), 0o600))
		}
	}
	return func(words ...string) *exec.Cmd {
		cmd := exec.Command(words[0])
		cmd.Env = append(os.Environ(), "HOSTNAME="+c.Name)
		for _, word := range words[1:] {
			cmd.Args = append(cmd.Args, own.Replace(word))
		}
		for _, one := range c.Env {
			if one.ValueFrom == nil {
				cmd.Env = append(cmd.Env, strings.ReplaceAll(own.Replace(one.Name+"="+one.Value), "$(REDIS_PASSWORD)", password))
			} else if one.ValueFrom.SecretKeyRef != nil {
				cmd.Env = append(cmd.Env, one.Name+"="+password)
			}
		}
		return cmd
	}
}

// The chart's containers work on this machine, over TLS: a master and a replica, their probes, the exporter and the gateway, which
// checks the certificate's name. Only ports, addresses and folders differ from those in a cluster.
func TestChart_overTLS(t *testing.T) {
	servers.Needed(t, "test-deploy")
	port, other, metrics, web, grpc := servers.FreePort(), servers.FreePort(), servers.FreePort(), servers.FreePort(), servers.FreePort()
	settings := strings.ReplaceAll(" REDIS_URL=localhost:"+port+" PORT="+web+" GRPC_PORT="+grpc+" DEBUG_PORT="+servers.FreePort()+" HOST=127.0.0.1 GRPC_HOST=127.0.0.1 DEBUG_HOST=127.0.0.1", " ", ",gateway.settings.")
	m := render(t, "--set", "password="+password+",tls.secret=t,gateway.tls.secret=t,gateway.replicas=1,monitoring.exporter.name=e"+settings, "--set-file", "gateway.rules=gateway/rules.yaml")
	certificate := t.TempDir()
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=limits", "-addext", "subjectAltName=DNS:localhost",
		"-keyout", certificate+"/key", "-out", certificate+"/crt").CombinedOutput()
	require.NoError(t, err, "%s", out)
	pem := map[string]string{"tls.crt": readFile(t, certificate+"/crt"), "tls.key": readFile(t, certificate+"/key"), "ca.crt": readFile(t, certificate+"/crt")}
	volumes := map[string]map[string]string{"tls": pem, "redis-tls": pem, "auth": m["Secret limits"].(*corev1.Secret).StringData}
	for volume, name := range map[string]string{"config": "limits", "scripts": "limits-monitoring", "rules": "limits-gateway"} {
		volumes[volume] = m["ConfigMap "+name].(*corev1.ConfigMap).Data
	}
	module, err := servers.Module()
	require.NoError(t, err)
	pods, gateway := m["StatefulSet limits"].(*appsv1.StatefulSet).Spec.Template.Spec, m["Deployment limits-gateway"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
	redis, exporter := pods.Containers[0], pods.Containers[1]
	for own, name := range map[string]string{port: "limits-0", other: "limits-1"} {
		redis.Name = name
		run := here(t, redis, volumes, loadmodule, "loadmodule "+module, "tls-port 6379", "tls-port "+own, "bind * -::*", "bind 127.0.0.1", "limits-0.limits-nodes 6379", "127.0.0.1 "+port, `-cli)"`, `-cli)" -p `+own)
		servers.Background(t, run(redis.Command...))
		require.NoError(t, servers.Await("the server is ready", func() bool { return run(redis.ReadinessProbe.Exec.Command...).Run() == nil }))
		assert.NoError(t, run(redis.LivenessProbe.Exec.Command...).Run())
	}
	servers.Background(t, here(t, exporter, volumes, "127.0.0.1:6379", "127.0.0.1:"+other, "=:9121", "=127.0.0.1:"+metrics)(append([]string{"prometheus-redis-exporter"}, exporter.Args...)...))
	servers.Background(t, here(t, gateway, volumes)(os.Getenv("GOTHROTTLE_GATEWAY_PROGRAM")))
	get := func(args ...string) string {
		out, _ := exec.Command("curl", append([]string{"-s", "-w", " %{http_code}"}, args...)...).Output()
		return string(out)
	}
	host := "http://127.0.0.1:"
	ready := func() bool { return strings.HasSuffix(get(host+web+gateway.ReadinessProbe.HTTPGet.Path), " 200") }
	require.NoError(t, servers.Await("the gateway is ready", ready))
	up := `redis_master_link_up{master_host="127.0.0.1",master_port="` + port + `"} 1`
	require.NoError(t, servers.Await("the exporter sees the replica follow the master", func() bool { return strings.Contains(get(host+metrics+"/metrics"), up) }))
	assert.Regexp(t, `(?s) 200.* 200.* 429$`, get(host+web+"/check")+get(host+web+"/check")+get(host+web+"/check"))
	assert.Regexp(t, " [245]..$", get("--cacert", certificate+"/crt", "https://localhost:"+grpc))
}
