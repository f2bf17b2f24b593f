package slurmtest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// guarded runs a daemon, and kills it when its stdin ends: with the test process at the latest.
const guarded = `"$@" </dev/null & daemon=$!; read -r end; kill -9 $daemon`

// daemon starts a daemon, with a log beside its directories. It ends with the test.
func (c *Cluster) daemon(name string, args ...string) {
	c.t.Helper()
	log := expect.Result(os.Create(c.Path(name + ".log"))).Value(c.t)
	cmd := exec.Command("/bin/sh", append([]string{"-c", guarded, "sh", find(c.t, name)}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env(), c.dir, log, log
	stdin := expect.Result(cmd.StdinPipe()).Value(c.t)
	expect.NoError(c.t, cmd.Start())
	c.t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait() // the daemon was killed
		log.Close()
		if c.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			c.t.Logf("the log of %s:\n%s", name, text)
		}
	})
}

// find returns the path of a daemon. Debian's directory of daemons is in the PATH of root only.
func find(t testing.TB, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		found, err := exec.LookPath(path)
		if err == nil {
			return found
		}
	}
	t.Fatalf("%s is missing: install Slurm with scripts/setup slurmctld", name)
	return ""
}
