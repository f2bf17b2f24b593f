// Package kubernetes checks deploy/kubernetes with the Go types of Kubernetes, and with the fields of KEDA. It is a module of its own, so that
// these are no dependencies of TDF.
package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

const dir = "../../../deploy/kubernetes"

// manifests are the objects of all files.
type manifests struct {
	configs     map[string]core.ConfigMap
	deployments map[string]apps.Deployment
	budgets     []policy.PodDisruptionBudget
	jobs        map[string]scaledJob
}

// load decodes all objects. An unknown or repeated field is an error.
func load(t *testing.T) manifests {
	t.Helper()
	m := manifests{configs: map[string]core.ConfigMap{}, deployments: map[string]apps.Deployment{}, jobs: map[string]scaledJob{}}
	files := expect.Result(filepath.Glob(dir + "/*.yaml")).Value(t)
	expect.MustLen(t, files, 4)
	for _, file := range files {
		text := string(expect.Result(os.ReadFile(file)).Value(t))
		for _, object := range strings.Split(text, "\n---\n") {
			m.add(t, file, []byte(object))
		}
	}
	return m
}

func (m *manifests) add(t *testing.T, file string, text []byte) {
	t.Helper()
	var of struct{ APIVersion, Kind string }
	expect.NoError(t, yaml.Unmarshal(text, &of), file)
	switch of.APIVersion + " " + of.Kind {
	case "v1 ConfigMap":
		c := decode[core.ConfigMap](t, file, text)
		m.configs[c.Name] = c
	case "apps/v1 Deployment":
		d := decode[apps.Deployment](t, file, text)
		m.deployments[d.Name] = d
	case "policy/v1 PodDisruptionBudget":
		m.budgets = append(m.budgets, decode[policy.PodDisruptionBudget](t, file, text))
	case "keda.sh/v1alpha1 ScaledJob":
		j := decode[scaledJob](t, file, text)
		m.jobs[j.Name] = j
	default:
		t.Errorf("%s: unknown object %s %s", file, of.APIVersion, of.Kind)
	}
}

func decode[T any](t *testing.T, file string, text []byte) (object T) {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict(text, &object), file)
	return object
}

// pods returns the templates of all pods.
func (m *manifests) pods() map[string]core.PodTemplateSpec {
	pods := map[string]core.PodTemplateSpec{}
	for name, d := range m.deployments {
		pods["deployment "+name] = d.Spec.Template
	}
	for name, j := range m.jobs {
		pods["scaled job "+name] = j.Spec.JobTargetRef.Template
	}
	return pods
}

// The decoding is strict: an unknown field at any depth is an error.
func TestUnknownFields(t *testing.T) {
	text := expect.Result(os.ReadFile(dir + "/scaledjob.yaml")).Value(t)
	for _, field := range []string{"ttlSecondsAfterFinished", "readOnlyRootFilesystem", "pollingInterval", "threshold"} {
		wrong := strings.Replace(string(text), field+":", field+"X:", 1)
		err := yaml.UnmarshalStrict([]byte(wrong), &scaledJob{})
		if field == "threshold" { // the metadata of a trigger are a map
			expect.NoError(t, err)
			continue
		}
		expect.MustTrue(t, err != nil, field)
		expect.Contains(t, err.Error(), `unknown field`, field)
	}
}

// Pods run without rights: not as root, without capabilities, with a read-only root and without a token of Kubernetes.
func TestPodsHaveNoRights(t *testing.T) {
	m := load(t)
	pods := m.pods()
	expect.MustLen(t, pods, 3)
	for name, pod := range pods {
		s := pod.Spec.SecurityContext
		expect.True(t, *s.RunAsNonRoot, name)
		expect.Equal(t, *s.RunAsUser, 65532, name)
		expect.Equal(t, s.SeccompProfile.Type, core.SeccompProfileTypeRuntimeDefault, name)
		expect.True(t, !*pod.Spec.AutomountServiceAccountToken, name)
		for _, c := range pod.Spec.Containers {
			expect.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
			expect.True(t, !*c.SecurityContext.AllowPrivilegeEscalation, name)
			expect.Equal(t, c.SecurityContext.Capabilities.Drop, []core.Capability{"ALL"}, name)
			expect.Equal(t, c.Env[0].ValueFrom.SecretKeyRef.Name, "tdf-redis", name)
		}
	}
}

// The configuration is valid, workers write only into volumes, and Kubernetes waits until a worker has stopped.
func TestWorkers(t *testing.T) {
	m := load(t)
	file := filepath.Join(t.TempDir(), "tdf.cfg")
	expect.NoError(t, os.WriteFile(file, []byte(m.configs["tdf"].Data["tdf.cfg"]), 0o644))
	cfg := expect.Result(config.LoadWorker(file)).Value(t)
	expect.Result(config.LoadTool(file, nil)).OK(t)
	needs := cfg.Grace + cfg.KillGrace + 12*time.Second // docs/clusters.md
	for name, pod := range m.pods() {
		if strings.Contains(name, "server") {
			continue
		}
		grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
		expect.Compare(t, grace, ">", needs, name)
		volumes := map[string]core.Volume{}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = v
		}
		var writable []string
		for _, mount := range pod.Spec.Containers[0].VolumeMounts {
			v, ok := volumes[mount.Name]
			expect.MustTrue(t, ok, name, mount.Name)
			if v.EmptyDir != nil {
				writable = append(writable, mount.MountPath)
			}
		}
		expect.Equal(t, writable, []string{cfg.Directory, "/tmp"}, name)
		command := pod.Spec.Containers[0].Command
		expect.Equal(t, command[0], "tdf-worker", name)
		expect.Equal(t, command[len(command)-2:], []string{"%h", "/etc/tdf/tdf.cfg"}, name)
	}
	idle := m.jobs["tdf-worker"].Spec.JobTargetRef.Template.Spec.Containers[0].Command
	expect.True(t, slices.Contains(idle, "--idle-timeout"), idle)
}

// Each budget selects the pods of one Deployment.
func TestDisruptionBudgets(t *testing.T) {
	m := load(t)
	expect.MustLen(t, m.budgets, 2)
	for _, b := range m.budgets {
		d, ok := m.deployments[b.Name]
		expect.MustTrue(t, ok, b.Name)
		expect.Equal(t, b.Spec.Selector.MatchLabels, d.Spec.Selector.MatchLabels, b.Name)
		for label, value := range b.Spec.Selector.MatchLabels {
			expect.Equal(t, d.Spec.Template.Labels[label], value, b.Name)
		}
	}
}

// The query of KEDA names metrics of docs/metrics.md, and counts the open tasks of a queue with a due task. No metrics
// give 0.
func TestQuery(t *testing.T) {
	m := load(t)
	trigger := m.jobs["tdf-worker"].Spec.Triggers[0]
	expect.Equal(t, trigger.Type, "prometheus")
	page := string(expect.Result(os.ReadFile("../../../docs/metrics.md")).Value(t))
	query := trigger.Metadata["query"]
	for _, name := range regexp.MustCompile(`tdf_[a-z_]+`).FindAllString(query, -1) {
		expect.Contains(t, page, "`"+name+"`")
	}
	tests := "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n"
	for want, series := range map[string][2]string{"7": {"7", "3"}, "0": {"7", "0"}} {
		tests += "  - interval: 1m\n    input_series:\n"
		for i, name := range []string{"tdf_queue_open_tasks", "tdf_queue_oldest_wait_seconds"} {
			for _, instance := range []string{"a", "b"} { // two processes show the same namespace
				tests += fmt.Sprintf("      - {series: '%s{namespace=\"tdf\",queue=\"default\",instance=\"%s\"}', values: '%s'}\n",
					name, instance, series[i])
			}
		}
		tests += fmt.Sprintf("    promql_expr_test:\n      - {expr: demand, eval_time: 0m, exp_samples: [{labels: demand, value: %s}]}\n", want)
	}
	tests += "  - interval: 1m\n    promql_expr_test:\n      - {expr: demand, eval_time: 0m, exp_samples: [{labels: demand, value: 0}]}\n"
	work := t.TempDir()
	rules := "groups:\n  - name: keda\n    rules:\n      - record: demand\n        expr: " + query + "\n"
	expect.NoError(t, os.WriteFile(filepath.Join(work, "rules.yml"), []byte(rules), 0o644))
	expect.NoError(t, os.WriteFile(filepath.Join(work, "tests.yml"), []byte(tests), 0o644))
	cmd := exec.Command("promtool", "test", "rules", "tests.yml")
	cmd.Dir = work
	out, err := cmd.CombinedOutput()
	expect.NoError(t, err, string(out))
}
