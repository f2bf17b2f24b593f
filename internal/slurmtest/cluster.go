package slurmtest

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// What the node of a Cluster offers.
const (
	CPUs = 8
	GPUs = 2
)

// A Cluster is a Slurm with one node. Only the test's goroutine may call its methods.
type Cluster struct {
	t   testing.TB
	dir string
}

// Start starts a Slurm, and waits until its node is idle. It ends with the test.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t, dirOf(t)}
	key := make([]byte, 1024)
	rand.Read(key)
	c.write("munge.key", 0o400, string(key))
	c.write("slurm.conf", 0o644, c.config())
	// The files only count as two GPUs. The device files exist on every machine.
	c.write("gres.conf", 0o644, "NodeName=n1 Name=gpu File=/dev/null,/dev/zero\n")
	for _, name := range []string{"state", "spool", "jobs"} {
		expect.NoError(t, os.Mkdir(c.Path(name), 0o755))
	}
	c.daemon("munged", "--force", "--foreground", "--socket="+c.Path("munge.socket"), "--key-file="+c.Path("munge.key"),
		"--log-file="+c.Path("munge.log"), "--pid-file="+c.Path("munge.pid"), "--seed-file="+c.Path("munge.seed"))
	expect.Eventually(t, "munged", func() bool { return exists(c.Path("munge.socket")) })
	c.daemon("slurmctld", "-D", "-c", "-f", c.Path("slurm.conf"))
	c.daemon("slurmd", "-D", "-N", "n1", "-f", c.Path("slurm.conf"))
	expect.Eventually(t, "the node is idle", func() bool {
		state, err := c.Command("sinfo", "--noheader", "--format=%t").Output()
		return err == nil && strings.TrimSpace(string(state)) == "idle"
	})
	t.Cleanup(c.endJobs)
	return c
}

// dirOf returns a directory with a short name, because the path of a socket may have at most 107 bytes.
func dirOf(t testing.TB) string {
	t.Helper()
	dir := expect.Result(os.MkdirTemp("", "slurm-*")).Value(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Path returns a path in the directory of the cluster.
func (c *Cluster) Path(name string) string { return filepath.Join(c.dir, name) }

// Env returns the environment in which the commands of Slurm use this cluster.
func (c *Cluster) Env() []string {
	return append(os.Environ(), "SLURM_CONF="+c.Path("slurm.conf"))
}

// Command returns a command of Slurm. It runs in the directory jobs of the cluster, where jobs write their output.
func (c *Cluster) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = c.Path("jobs"), c.Env()
	return cmd
}

// Run runs a command of Slurm, and returns its stdout without blanks around it.
func (c *Cluster) Run(name string, args ...string) string {
	c.t.Helper()
	out, err := c.Command(name, args...).CombinedOutput()
	expect.NoError(c.t, err, name, args, string(out))
	return strings.TrimSpace(string(out))
}

// Jobs returns what squeue prints about the jobs that have not ended, in a format of squeue: a line for each job.
func (c *Cluster) Jobs(format string) []string {
	c.t.Helper()
	return strings.Fields(c.Run("squeue", "--noheader", "--array", "--format="+format))
}

// config returns the configuration of all daemons. The node need not have the CPUs.
func (c *Cluster) config() string {
	me := expect.Result(user.Current()).Value(c.t)
	return fmt.Sprintf(`ClusterName=tdf
FirstJobId=1000001
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%s
SlurmdPort=%s
SlurmUser=%s
SlurmdUser=%[3]s
AuthType=auth/munge
AuthInfo=socket=%[4]s/munge.socket
CredType=cred/munge
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool
SlurmctldPidFile=%[4]s/slurmctld.pid
SlurmdPidFile=%[4]s/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=%[5]d RealMemory=100 Gres=gpu:%[6]d State=UNKNOWN
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP
`, c.port(), c.port(), me.Username, c.dir, CPUs, GPUs)
}

func (c *Cluster) port() string {
	_, port, err := net.SplitHostPort(redistest.FreeAddr(c.t))
	expect.NoError(c.t, err)
	return port
}

func (c *Cluster) write(name string, mode os.FileMode, text string) {
	c.t.Helper()
	expect.NoError(c.t, os.WriteFile(c.Path(name), []byte(text), mode))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// endJobs kills all jobs, so that none of their processes outlives the daemons.
func (c *Cluster) endJobs() {
	for _, job := range c.Jobs("%i") {
		_ = c.Command("scancel", "--signal=KILL", "--full", job).Run() // fails for a job that does not run
		_ = c.Command("scancel", job).Run()                            // fails if the job has just ended
	}
	if c.t.Failed() {
		files, _ := filepath.Glob(c.Path("jobs/*.out"))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			c.t.Logf("%s:\n%s", filepath.Base(file), text)
		}
	}
	expect.Eventually(c.t, "the end of the jobs", func() bool { return len(c.Jobs("%i")) == 0 })
}
