package fetch

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func needRsync(t *testing.T) {
	t.Helper()
	expect.Result(exec.LookPath("rsync")).OK(t, "rsync is not installed: apt-get install rsync (make test does it")
}

// daemon serves dir as three rsync modules: m, locked and in. The module locked needs a password, and the module in is
// writable. The test itself listens, and starts an rsync for each connection, as inetd does. If rsync listened, another
// process could take the port first.
func daemon(t *testing.T, dir string) (address string) {
	t.Helper()
	needRsync(t)
	etc := t.TempDir()
	must(t, os.WriteFile(etc+"/secrets", []byte("bob:hush\n"), 0o600))
	uid := ""
	if os.Getuid() == 0 {
		uid = "uid = 0\ngid = 0\n"
	}
	conf := write(t, etc+"/rsyncd.conf", fmt.Appendf(nil, `use chroot = no
log file = %s/log
%s[m]
path = %s
[locked]
path = %s
auth users = bob
secrets file = %s/secrets
[in]
path = %s
read only = no
`, etc, uid, dir, dir, etc, dir))
	l := expect.Result(net.Listen("tcp", "127.0.0.1:0")).Value(t)
	var served sync.WaitGroup
	t.Cleanup(func() { l.Close(); served.Wait() })
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { serveRsync(t, conf, c.(*net.TCPConn)) })
		}
	})
	return l.Addr().String()
}

func serveRsync(t *testing.T, conf string, c *net.TCPConn) {
	socket, err := c.File()
	c.Close()
	if err != nil {
		t.Error(err)
		return
	}
	cmd := exec.Command("rsync", "--daemon", "--config="+conf)
	cmd.Stdin, cmd.Stdout = socket, socket
	err = cmd.Start()
	socket.Close() // so that the connection ends together with the rsync process
	if err != nil {
		t.Error(err)
		return
	}
	_ = cmd.Wait() // the error is ignored, because the client reports it
}

func TestRsyncDaemon(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a b/x.tar.gz", pack(t, "tar.gz", runItem))
	write(t, dir+"/long.zip", make([]byte, 5000))
	write(t, dir+"/empty.zip", nil)
	must(t, os.MkdirAll(dir+"/dir/run.sh", 0o755))
	must(t, os.Symlink("a b/x.tar.gz", dir+"/link.tar.gz"))
	base := "rsync:rsync://" + daemon(t, dir)

	fetchWorks(t, newFetcher(t), base+"/m/a b/x.tar.gz")
	fetchWorks(t, newFetcher(t), base+"/m/link.tar.gz")

	f := newFetcher(t)
	f.Limits.Bytes = 4999
	fails := map[string]string{
		"/m/none.zip":     "exit status 23 (the file does not exist, or cannot be read): ",
		"/x/y.zip":        "exit status 5 (the daemon refused the request): @ERROR: Unknown module 'x'",
		"/m/dir/run.sh":   "the source is a directory; a source must be one file",
		"/m/long.zip":     "more than 4999 bytes (max_program_bytes)",
		"/m/empty.zip":    "the source is empty",
		"/locked/run.sh":  "@ERROR: auth failed on module locked",
		"/m/../etc/x.zip": "exit status",
	}
	for path, want := range fails {
		fetchFails(t, f, base+path, "fetching "+base+path+": rsync: ", want)
	}
}

// fakeSSH replaces ssh by a script. The script runs the command in a shell on this machine, as sshd does on another
// machine. It writes its arguments and environment to a file, and fakeSSH returns the path of this file.
func fakeSSH(t *testing.T, command string) (log string) {
	t.Helper()
	needRsync(t)
	dir := openDir(t)
	log = dir + "/log"
	script := `#!/bin/sh
{ echo "$@"; env; } > ` + log + `
while :; do case $1 in -l) shift 2;; -*) shift;; *) break;; esac; done
shift
` + command + "\n"
	must(t, os.WriteFile(dir+"/ssh", []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return log
}

func TestRsyncShell(t *testing.T) {
	dir := t.TempDir()
	log := fakeSSH(t, `exec sh -c "$*"`)
	t.Setenv("RSYNC_RSH", "touch "+dir+"/rsh")
	t.Setenv("TDF_CFG_REDIS_PASSWORD", "hush")
	odd := dir + "/$(touch " + strings.ReplaceAll(dir, "/", "_") + ") ;'x/run.sh"
	write(t, odd, []byte(goodScript))
	fetchWorks(t, newFetcher(t), "rsync:bob@far.example:"+odd)
	got := expect.Result(os.ReadFile(log)).Value(t)
	for _, want := range []string{"-a -k -oBatchMode=yes", "-oConnectTimeout=15", "-l bob far.example rsync --server"} {
		expect.Contains(t, string(got), want, "ssh was called as … without")
	}
	expect.NotContains(t, string(got), "hush")
	expect.NotContains(t, string(got), "RSYNC_RSH")
	expect.Result(os.Stat(dir+"/rsh")).Fails(t, "", "RSYNC_RSH was used")
}

func TestRsyncCancelled(t *testing.T) {
	dir := t.TempDir()
	fakeSSH(t, withProcess(dir))
	f := newFetcher(t)
	_, err := f.Fetch(endsWith(t, dir), "prog", "rsync:far.example:x.zip")
	checkFailed(t, err, "rsync: "+errEnough.Error())
	checkSame(t, f.Dir, map[string]string{})
	checkEnded(t, dir+"/pids")
}

// withProcess is a script that leaves a process in the background, and writes the ids of both to the file pids in dir.
func withProcess(dir string) string {
	return `sleep 600 & echo "$$ $!" >` + dir + `/new; mv ` + dir + `/new ` + dir + `/pids; wait`
}

// endsWith returns a context that ends when the file pids is in dir.
func endsWith(t *testing.T, dir string) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	go func() {
		expect.Eventually(t, "the script has begun", func() bool {
			_, err := os.Stat(dir + "/pids")
			return err == nil || ctx.Err() != nil
		})
		cancel(errEnough)
	}()
	return ctx
}

// checkEnded reads process ids from a file, and waits until these processes have ended.
func checkEnded(t *testing.T, file string) {
	t.Helper()
	data := expect.Result(os.ReadFile(file)).Value(t)
	for _, word := range strings.Fields(string(data)) {
		pid := expect.Result(strconv.Atoi(word)).Value(t)
		eventually(t, "process "+word+" ends", func() bool { return ended(pid) })
	}
}

// ended reports whether a process has ended. A zombie counts as ended, because its new parent may never reap it.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
