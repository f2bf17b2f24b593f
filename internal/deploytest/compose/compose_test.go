// Package compose checks deploy/compose.yaml with the library that docker compose uses. It is a module of its own, so that the
// library is no dependency of TDF.
package compose

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

const deploy = "../../../deploy"

var passwords = types.Mapping{"REDIS_PASSWORD": "redis-secret", "GRAFANA_PASSWORD": "grafana-secret"}

// load returns the project as docker compose reads it: with the schema and all rules of the Compose specification.
func load(t *testing.T, environment types.Mapping, more ...string) (*types.Project, error) {
	t.Helper()
	dir := expect.Result(filepath.Abs(deploy)).Value(t)
	details := types.ConfigDetails{WorkingDir: dir, Environment: environment}
	for _, name := range append([]string{"compose.yaml"}, more...) {
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: filepath.Join(dir, name)})
	}
	return loader.LoadWithContext(t.Context(), details)
}

func project(t *testing.T) *types.Project {
	t.Helper()
	return expect.Result(load(t, passwords)).Value(t)
}

// withSentinel is the project with replicas and sentinels.
func withSentinel(t *testing.T) *types.Project {
	t.Helper()
	return expect.Result(load(t, passwords, "compose.sentinel.yaml")).Value(t)
}

// withCluster is the project with a Redis Cluster.
func withCluster(t *testing.T) *types.Project {
	t.Helper()
	return expect.Result(load(t, passwords, "compose.cluster.yaml")).Value(t)
}

// A variant is the project with a Redis that survives the loss of a node.
type variant struct {
	name      string
	load      func(*testing.T) *types.Project
	addresses map[string]string // of all containers that it adds, and of redis
}

var (
	sentinel = variant{"sentinel", withSentinel, map[string]string{
		"redis": "172.30.84.11", "redis-2": "172.30.84.12", "redis-3": "172.30.84.13",
		"sentinel-1": "172.30.84.21", "sentinel-2": "172.30.84.22", "sentinel-3": "172.30.84.23",
	}}
	cluster = variant{"cluster", withCluster, map[string]string{
		"redis": "172.30.84.11", "redis-2": "172.30.84.12", "redis-3": "172.30.84.13",
		"redis-4": "172.30.84.14", "redis-5": "172.30.84.15", "redis-6": "172.30.84.16", "cluster": "172.30.84.17",
	}}
)

// each runs a test with each variant.
func each(t *testing.T, test func(t *testing.T, v variant, p *types.Project)) {
	t.Helper()
	for _, v := range []variant{sentinel, cluster} {
		t.Run(v.name, func(t *testing.T) { test(t, v, v.load(t)) })
	}
}

// Without passwords, nothing starts, and the error names the script that makes them.
func TestNoDefaultPasswords(t *testing.T) {
	for name := range passwords {
		some := passwords.Clone()
		delete(some, name)
		_, err := load(t, some)
		expect.Fails(t, err, "start with deploy/compose", name)
	}
}

// No container can write to its image, has capabilities or can gain rights. Only this machine reaches the published ports.
func TestContainersAreRestricted(t *testing.T) { each(t, restricted) }

func restricted(t *testing.T, v variant, p *types.Project) {
	all := append(project(t).ServiceNames(), slices.Collect(maps.Keys(v.addresses))...)
	slices.Sort(all)
	expect.Equal(t, p.ServiceNames(), slices.Compact(all))
	for name, s := range p.Services {
		expect.True(t, s.ReadOnly, name)
		expect.Equal(t, s.CapDrop, []string{"ALL"}, name)
		expect.Len(t, s.CapAdd, 0, name)
		expect.True(t, !s.Privileged, name)
		expect.Equal(t, s.SecurityOpt, []string{"no-new-privileges:true"}, name)
		expect.NotEqual(t, s.Restart, "", name)
		expect.NotEqual(t, s.User, "root", name)
		expect.NotEqual(t, s.User, "0", name)
		if s.Build == nil {
			expect.True(t, regexp.MustCompile(`:v?\d+\.\d+`).MatchString(s.Image), name, "has an image without a version:", s.Image)
		}
		for _, port := range s.Ports {
			expect.Equal(t, port.HostIP, "127.0.0.1", name)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				expect.Result(os.Stat(v.Source)).OK(t)
				expect.True(t, v.ReadOnly, name, v.Source)
			}
		}
	}
	for name, c := range p.Configs {
		expect.True(t, expect.Result(os.Stat(c.File)).Value(t).Mode().IsRegular(), name)
	}
}

// Redis has no way out, and programs reach neither Prometheus nor Grafana, which need no password on this network.
func TestNetworks(t *testing.T) { each(t, parted) }

func parted(t *testing.T, v variant, p *types.Project) {
	networks := func(name string) []string { return slices.Sorted(maps.Keys(p.Services[name].Networks)) }
	expect.True(t, bool(p.Networks["redis"].Internal), "the network redis is not internal")
	for name, want := range map[string][]string{
		"redis": {"redis"}, "server": {"redis"}, "token": {"redis"}, "serve": {"monitoring", "redis"}, "worker": {"programs", "redis"},
		"prometheus": {"monitoring"}, "grafana": {"monitoring"},
	} {
		expect.Equal(t, networks(name), want, name)
	}
	for name, addr := range v.addresses {
		expect.Equal(t, networks(name), []string{"redis"}, name)
		expect.Equal(t, p.Services[name].Networks["redis"].Ipv4Address, addr, name)
		expect.Equal(t, *p.Services[name].Environment["ADDRESS"], addr, name)
	}
}

// The password is in the environment of those that need it, and in no command. Programs could read it from the processes of a
// health check or of an init.
func TestPasswordOfRedis(t *testing.T) { each(t, secret) }

func secret(t *testing.T, _ variant, p *types.Project) {
	for name, s := range p.Services {
		has := false
		for key, value := range s.Environment {
			has = has || strings.Contains(key+*value, "redis-secret")
		}
		needs := name != "prometheus" && name != "grafana"
		expect.Equal(t, has, needs, name)
		expect.True(t, !strings.Contains(strings.Join(s.Command, " "), "-secret"), name, s.Command)
		checked := s.HealthCheck != nil && len(s.HealthCheck.Test) > 1
		unchecked := []string{"worker", "token", "cluster"}
		expect.Equal(t, checked, !slices.Contains(unchecked, name), name, "has a health check")
	}
	worker := p.Services["worker"]
	if worker.Init != nil {
		expect.True(t, !*worker.Init, "the worker has an init")
	}
}

// The configuration is valid for all components, and docker waits until a stopping worker has ended its programs.
func TestConfiguration(t *testing.T) { each(t, configured) }

func configured(t *testing.T, _ variant, p *types.Project) {
	tool := expect.Result(config.LoadTool(filepath.Join(deploy, "tdf.cfg"), []string{"TDF_CFG_REDIS_PASSWORD=x"})).Value(t)
	expect.Result(p.GetService(tool.Manager.Redis.Host)).OK(t)
	expect.Equal(t, tool.Worker.Directory, p.Services["worker"].Volumes[0].Target)
	needed := tool.Worker.Grace + tool.Worker.KillGrace + 10*time.Second
	expect.True(t, time.Duration(*p.Services["worker"].StopGracePeriod) > needed, "needed", needed)
	scraped := string(expect.Result(os.ReadFile(filepath.Join(deploy, "prometheus", "prometheus.yml"))).Value(t))
	expect.Contains(t, scraped, `targets: ["serve`+tool.HTTP.Listen+`"]`)
	expect.True(t, slices.Contains(tool.HTTP.Hosts, "serve"), tool.HTTP.Hosts)
	for _, s := range p.Services {
		for name := range s.Environment {
			if strings.HasPrefix(name, "TDF_CFG_") {
				known := []string{"TDF_CFG_REDIS_PASSWORD", "TDF_CFG_REDIS_SENTINEL_PASSWORD", "TDF_CFG_HTTP_LISTEN"}
				expect.True(t, slices.Contains(known, name), name)
			}
		}
	}
}

// With Sentinel or a cluster, only the address of Redis differs.
func TestConfigurationOfVariants(t *testing.T) { each(t, onlyRedisDiffers) }

func onlyRedisDiffers(t *testing.T, v variant, p *types.Project) {
	text := func(name string) string {
		return string(expect.Result(os.ReadFile(filepath.Join(deploy, name))).Value(t))
	}
	file := "tdf." + v.name + ".cfg"
	_, plain, _ := strings.Cut(text("tdf.cfg"), "[tdf]")
	_, rest, _ := strings.Cut(text(file), "[tdf]")
	expect.Equal(t, rest, plain)
	expect.Equal(t, filepath.Base(p.Configs["tdf.cfg"].File), file)
	environment := []string{"TDF_CFG_REDIS_PASSWORD=x"}
	if v.name == sentinel.name {
		environment = append(environment, "TDF_CFG_REDIS_SENTINEL_PASSWORD=x")
	}
	r := expect.Result(config.LoadTool(filepath.Join(deploy, file), environment)).Value(t).Manager.Redis
	expect.Equal(t, r.Replicas.Wanted, 1)
	var nodes, sentinels []string
	for _, name := range slices.Sorted(maps.Keys(v.addresses)) {
		if strings.HasPrefix(name, "redis") {
			nodes = append(nodes, v.addresses[name]+":6379")
		} else {
			sentinels = append(sentinels, v.addresses[name]+":26379")
		}
	}
	if v.name == sentinel.name {
		expect.Equal(t, r.Master, "tdf")
		expect.Equal(t, r.Sentinels, sentinels)
	} else {
		expect.Equal(t, r.Cluster, nodes)
	}
}

// The first start makes the token of Prometheus. Later starts keep it, unless Redis or the volume has lost it.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	fake := `#!/bin/sh
case $2 in
ls) printf 'NAME\tROLE\n'; cat names ;;
add) printf 'prometheus\tviewer\t\n' >names; echo "token-$(date +%N)" ;;
esac
`
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "tdf"), []byte(fake), 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "names"), nil, 0o600))
	command := slices.Clone(project(t).Services["token"].Command)
	last := len(command) - 1
	command[last] = strings.ReplaceAll(command[last], "/run/tdf", dir)
	start := func() string {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		expect.MustTrue(t, err == nil, err, string(out))
		return string(expect.Result(os.ReadFile(filepath.Join(dir, "token"))).Value(t))
	}
	first := start()
	expect.True(t, strings.HasPrefix(first, "token-"), first)
	expect.Equal(t, start(), first)
	for _, lost := range []string{"names", "token"} {
		expect.NoError(t, os.Truncate(filepath.Join(dir, lost), 0))
		second := start()
		expect.NotEqual(t, second, first, lost)
		expect.NotEqual(t, second, "", lost, first)
		first = second
	}
}

// docker compose itself accepts the file, where it is installed.
func TestDockerCompose(t *testing.T) {
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
		t.Skip("docker compose is not installed; the other tests have read the file with its library")
	}
	each(t, func(t *testing.T, v variant, _ *types.Project) {
		cmd := exec.CommandContext(t.Context(), "docker", "compose", "-f", filepath.Join(deploy, "compose.yaml"), "-f",
			filepath.Join(deploy, "compose."+v.name+".yaml"), "config", "--quiet")
		cmd.Env = append(os.Environ(), passwords.Values()...)
		out, err := cmd.CombinedOutput()
		expect.NoError(t, err, string(out))
	})
}
