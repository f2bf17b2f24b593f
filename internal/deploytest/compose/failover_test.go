package compose

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A local runs the commands of the containers of a variant, with addresses of this machine.
type local struct {
	*testing.T
	variant
	project *types.Project
	dir     string
	network string // the beginning of the addresses
}

func newLocal(t *testing.T, v variant) *local {
	network := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(255))
	return &local{t, v, v.load(t), t.TempDir(), network}
}

// here returns a text of a container with the addresses and paths of this machine.
func (l *local) here(name, text string) string {
	return strings.NewReplacer("172.30.84.", l.network, "/data", filepath.Join(l.dir, name), "$$", "$",
		"/etc/redis.conf", expect.Result(filepath.Abs(filepath.Join(deploy, "redis.conf"))).Value(l)).Replace(text)
}

func (l *local) addressOf(name string) string { return l.here(name, l.addresses[name]) }

func (l *local) environment(name string) []string {
	password := []string{"REDIS_PASSWORD=redis-secret", "REDISCLI_AUTH=redis-secret"}
	return append(append(os.Environ(), password...), "ADDRESS="+l.addressOf(name))
}

// command returns the command of a container.
func (l *local) command(name string) *exec.Cmd {
	cmd := exec.CommandContext(l.Context(), "sh", "-ec", l.here(name, l.project.Services[name].Command[2]))
	cmd.Env = l.environment(name)
	return cmd
}

// start starts a container, and returns when it is healthy.
func (l *local) start(name string) *exec.Cmd {
	cmd := l.command(name)
	expect.NoError(l, os.MkdirAll(filepath.Join(l.dir, name), 0o755))
	expect.NoError(l, cmd.Start())
	l.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if the process has ended
		_ = cmd.Wait()
	})
	expect.Eventually(l, name+" is healthy", func() bool {
		check := exec.CommandContext(l.Context(), "sh", "-c", l.here(name, l.project.Services[name].HealthCheck.Test[1]))
		check.Env = l.environment(name)
		return check.Run() == nil
	})
	return cmd
}

// startAll starts all containers whose names begin so.
func (l *local) startAll(beginning string) map[string]*exec.Cmd {
	running := map[string]*exec.Cmd{}
	for _, name := range slices.Sorted(maps.Keys(l.addresses)) {
		if strings.HasPrefix(name, beginning) {
			running[name] = l.start(name)
		}
	}
	return running
}

// ask returns the answer of redis-cli, or its error while the container is down.
func (l *local) ask(name, port string, words ...string) string {
	at := []string{"-h", l.addressOf(name), "-p", port}
	cmd := exec.CommandContext(l.Context(), "redis-cli", append(at, words...)...)
	cmd.Env = l.environment(name)
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func (l *local) await(what, name, port, text string, words ...string) {
	last := ""
	expect.Eventually(l, what, func() bool {
		last = l.ask(name, port, words...)
		return strings.Contains(last, text)
	}, func() any { return last })
}

func (l *local) kill(cmd *exec.Cmd) {
	expect.NoError(l, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
}

// The commands of the containers start a Redis that survives the loss of its primary. A node that comes back has the role
// that the sentinels gave it.
func TestFailover(t *testing.T) {
	l := newLocal(t, sentinel)
	running := l.startAll("redis")
	l.startAll("sentinel")
	for _, name := range []string{"sentinel-1", "sentinel-2", "sentinel-3"} {
		l.await("the sentinels know all", name, "26379", "slaves=2,sentinels=3", "info", "sentinel")
	}
	l.await("the replicas are online", "redis", "6379", "connected_slaves:2", "info", "replication")
	l.kill(running["redis"])
	primary := ""
	expect.Eventually(t, "another primary", func() bool {
		primary = l.ask("sentinel-1", "26379", "sentinel", "get-master-addr-by-name", "tdf")
		return strings.Contains(primary, l.network+"12") || strings.Contains(primary, l.network+"13")
	}, func() any { return primary })
	l.start("redis")
	l.await("the old primary is a replica", "redis", "6379", "role:slave", "info", "replication")
	l.await("its file says so", "redis", "6379", "OK", "config", "rewrite")
	file := string(expect.Result(os.ReadFile(filepath.Join(l.dir, "redis", "redis.conf"))).Value(t))
	expect.Contains(t, file, "\nreplicaof "+l.network)
}

// The commands of the containers make a cluster once, and a later start keeps it. It survives the loss of a primary.
func TestClusterFailover(t *testing.T) {
	l := newLocal(t, cluster)
	running := l.startAll("redis")
	for range 2 {
		out, err := l.command("cluster").CombinedOutput()
		expect.NoError(t, err, string(out))
	}
	for name := range running {
		l.await("the cluster is in order", name, "6379", "cluster_state:ok", "cluster", "info")
	}
	l.await("the replica is online", "redis", "6379", "state=online", "info", "replication")
	l.kill(running["redis"])
	slots := ""
	expect.Eventually(t, "another primary", func() bool {
		slots = l.ask("redis-2", "6379", "cluster", "slots")
		return !strings.Contains(slots, l.addressOf("redis")+"\n")
	}, func() any { return slots })
	l.await("the cluster works again", "redis-2", "6379", "cluster_state:ok", "cluster", "info")
	l.start("redis")
	l.await("the old primary is a replica", "redis", "6379", "role:slave", "info", "replication")
	l.await("it has the data", "redis", "6379", "master_link_status:up", "info", "replication")
}
