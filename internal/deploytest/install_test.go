package deploytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestInstall(t *testing.T) {
	w := newWorld(t, "a")
	stdout, _ := w.install(0, "-n", "2", "-c", w.config("[tdf]\nnamespace=x\n"), "a")
	expect.Equal(t, stdout, "a: ok: tdf-worker v1 amd64, workers restarted: 2\n")
	want := `useradd --system --user-group --home-dir /var/lib/tdf --no-create-home --shell /usr/sbin/nologin tdf
systemctl daemon-reload
systemctl enable --quiet tdf-worker@1.service tdf-worker@2.service
systemctl restart tdf-worker@1.service tdf-worker@2.service
systemctl is-active --quiet tdf-worker@1.service
systemctl is-active --quiet tdf-worker@2.service
`
	expect.Equal(t, w.log("a"), want, "commands of the host")
	for name, mode := range map[string]os.FileMode{
		"usr/local/bin/tdf-worker": 0o755, "etc/systemd/system/tdf-worker@.service": 0o644, "etc/tdf/worker.cfg": 0o600,
	} {
		expect.Equal(t, expect.Result(os.Stat(w.path("a", name))).Value(t).Mode(), mode, name)
	}
	expect.Equal(t, read(t, w.path("a", "etc/tdf/worker.cfg.new.owner")), "tdf:tdf\n", "the owner of the configuration")
	expect.Equal(t, read(t, w.path("a", "etc/tdf/worker.cfg")), "[tdf]\nnamespace=x\n")
	calls := read(t, filepath.Join(w.dir, "ssh.log"))
	expect.Equal(t, strings.Count(calls, "-o BatchMode=yes"), 2, "ssh was called with", calls)
	expect.Equal(t, strings.Count(calls, "-l root -- a "), 2, "ssh was called with", calls)
}

// An installation without changes does not restart the workers.
func TestInstallAgain(t *testing.T) {
	w := newWorld(t, "a")
	cfg := w.config("[tdf]\nnamespace=x\n")
	w.install(0, "-n", "3", "-c", cfg, "a")
	w.log("a")
	const three = "tdf-worker@1.service tdf-worker@2.service tdf-worker@3.service\n"
	steps := []struct {
		name   string
		change func()
		args   []string
		did    string // part of the host's log
		output string // part of stdout
	}{
		{"nothing new", func() {}, []string{"-c", cfg}, "systemctl start " + three, "v1 amd64, workers running: 3"},
		{"without a configuration", func() {}, nil, "systemctl start " + three, "workers running: 3"},
		{"another configuration", func() { write(t, cfg, 0o600, "[tdf]\nnamespace=y\n") }, []string{"-c", cfg}, "systemctl restart " + three, "workers restarted: 3"},
		{"nothing new again", func() {}, []string{"-c", cfg}, "systemctl start " + three, "workers running: 3"},
		{"another release", func() {
			must(t, os.RemoveAll(w.dist))
			w.release("v2", "amd64")
		}, nil, "systemctl restart " + three, "v2 amd64, workers restarted: 3"},
		{"fewer", func() {}, []string{"-n", "1"}, "systemctl disable --now --quiet tdf-worker@3.service\n", "workers running: 1"},
		{"none", func() {}, []string{"-n", "0"}, "systemctl disable --now --quiet tdf-worker@1.service\n", "no workers"},
	}
	for _, step := range steps {
		step.change()
		stdout, _ := w.install(0, append(step.args, "a")...)
		got := w.log("a")
		expect.Contains(t, got, step.did, step.name)
		expect.NotContains(t, got, "useradd", step.name)
		expect.Contains(t, stdout, step.output, step.name)
	}
}

// The first installation after a failed installation restarts the workers.
func TestInstallAfterFailure(t *testing.T) {
	w := newWorld(t, "a")
	cfg := w.config("x")
	for name, want := range map[string]string{
		"hangs":  "a: failed: systemctl restart failed\n",
		"broken": "a: failed: tdf-worker@1.service has ended: tdf-worker: worker.cfg: [tdf] namespace: missing\n",
	} {
		write(t, cfg, 0o600, name)
		write(t, w.path("a", name), 0o600, "")
		stdout, _ := w.install(1, "-c", cfg, "a")
		expect.True(t, stdout == want, name, stdout)
		must(t, os.Remove(w.path("a", name)))
		if stdout, _ := w.install(0, "-c", cfg, "a"); !strings.Contains(stdout, "workers restarted: 1\n") {
			t.Errorf("the second installation, after a failure (%s), printed %q", name, stdout)
		}
	}
}

func TestInstallOnMany(t *testing.T) {
	w := newWorld(t, "a", "b", "arm", "sparc", "fe80::1%eth0", "user.example.org", "unready", "sudoer", "nobody")
	w.release("v1", "arm64")
	write(t, w.path("arm", "machine"), 0o644, "Linux aarch64\n")
	write(t, w.path("sparc", "machine"), 0o644, "SunOS \x1b[31msparc\n")
	write(t, w.path("sudoer", "uid"), 0o644, "1000\n")
	write(t, w.path("nobody", "uid"), 0o644, "1000\n")
	write(t, w.path("nobody", "nosudo"), 0o644, "")
	must(t, os.RemoveAll(w.path("unready", "run")))
	hosts := filepath.Join(t.TempDir(), "hosts")
	write(t, hosts, 0o644, "# the lab's hosts\n\na\n b # comment\r\narm\na\nsparc\ndown\nfe80::1%eth0\n\tunready\nsudoer\nnobody")
	stdout, _ := w.install(1, "-p", "3", "-u", "admin", "-c", w.config("x"), hosts, "user.example.org", "b")
	want := map[string]string{
		"a": "ok: tdf-worker v1 amd64", "b": "ok: ", "arm": "ok: tdf-worker v1 arm64", "fe80::1%eth0": "ok: ", "user.example.org": "ok: ", "sudoer": "ok: ",
		"sparc": "failed: no release for $'SunOS", "down": "failed: ssh: connect to host: Connection refused",
		"unready": "failed: systemd does not run on this host", "nobody": "failed: sudo: a password is required",
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	expect.Len(t, lines, len(want), "printed", stdout)
	for _, line := range lines {
		host, result, _ := strings.Cut(line, ": ")
		text, ok := want[host]
		expect.True(t, ok, "printed", line, "want", text)
		expect.True(t, strings.HasPrefix(result, text), "printed", line, "want", text)
		expect.NotContains(t, result, "\x1b", "printed", line)
	}
}

// Other users cannot read worker.cfg and worker.env, even if a user has written these files by hand. Programs cannot
// read worker.env.
func TestInstalledSecrets(t *testing.T) {
	w := newWorld(t, "a")
	variables := filepath.Join(t.TempDir(), "my env")
	write(t, variables, 0o644, "TDF_CFG_REDIS_PASSWORD=x\n")
	write(t, w.path("a", "etc/tdf/worker.cfg"), 0o644, "by hand")
	w.install(0, "-e", variables, "a")
	env := w.path("a", "etc/tdf/worker.env")
	expect.Equal(t, read(t, env), "TDF_CFG_REDIS_PASSWORD=x\n", "worker.env")
	must(t, os.Chmod(env, 0o644))
	w.install(0, "a")
	for name, owner := range map[string]string{"worker.cfg": "tdf:tdf\n", "worker.env": "root:root\n"} {
		expect.Equal(t, expect.Result(os.Stat(w.path("a", "etc/tdf/"+name))).Value(t).Mode(), 0o600, name)
		expect.Equal(t, read(t, w.path("a", "etc/tdf/"+name+".owner")), owner, "the owner of", name)
	}
}

func TestInstallWithoutConfiguration(t *testing.T) {
	w := newWorld(t, "a")
	stdout, _ := w.install(1, "a")
	expect.True(t, stdout == "a: failed: /etc/tdf/worker.cfg does not exist; name a configuration\n", stdout)
}

func TestDryRun(t *testing.T) {
	w := newWorld(t, "a")
	cfg := w.config("x")
	stdout, _ := w.install(0, "--dry-run", "-n", "4", "-c", cfg, "a", "down")
	want := "as root: tdf-worker v1, " + cfg + " as /etc/tdf/worker.cfg, 4 workers running\n"
	expect.Equal(t, stdout, "a: "+want+"down: "+want)
	expect.Result(os.Stat(filepath.Join(w.dir, "ssh.log"))).Fails(t, "", "the script called ssh")
}

func TestInvalidArguments(t *testing.T) {
	w := newWorld(t, "a")
	hosts := filepath.Join(t.TempDir(), "hosts")
	write(t, hosts, 0o644, "a\n-oProxyCommand=touch${IFS}x\n")
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, 0o644, "# none\n")
	bad, two := filepath.Join(t.TempDir(), "bad"), filepath.Join(t.TempDir(), "two")
	must(t, os.CopyFS(bad, os.DirFS(w.dist)))
	write(t, filepath.Join(bad, "SHA256SUMS"), 0o644, strings.Repeat("0", 64)+"  tdf_v1_linux_amd64.tar.gz\n")
	must(t, os.CopyFS(two, os.DirFS(w.dist)))
	write(t, filepath.Join(two, "tdf_v2_linux_arm64.tar.gz"), 0o644, "")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"unknown option -oProxyCommand", []string{"-oProxyCommand=x"}},
		{"is not the name of a host", []string{"--", "-oProxyCommand=x"}},
		{"is not the name of a host", []string{"a", "-oProxyCommand=x"}},
		{"is not the name of a host", []string{"a;b"}},
		{"is not the name of a host", []string{"$(touch x)"}},
		{"is not the name of a host", []string{"root@a"}},
		{"is not the name of a host", []string{"a\nb"}},
		{"is not the name of a host", []string{""}},
		{hosts + " is not the name of a host", []string{hosts}},
		{"no hosts; see -h", nil},
		{"no hosts; see -h", []string{empty}},
		{"-n x: expected a number", []string{"-n", "x", "a"}},
		{"-n -1: expected a number", []string{"-n", "-1", "a"}},
		{"-p 0: expected a number above 0", []string{"-p", "0", "a"}},
		{"-u -oX: expected a user's name", []string{"-u", "-oX", "a"}},
		{"cannot be read", []string{"-c", "nothere", "a"}},
		{"-n needs a value", []string{"-n"}},
		{"has no archive of a release", []string{"-d", t.TempDir(), "a"}},
		{"its checksum differs from SHA256SUMS", []string{"-d", bad, "a"}},
		{"has archives of v1 and v2", []string{"-d", two, "a"}},
	} {
		stdout, stderr := w.install(2, c.args...)
		expect.Equal(t, stdout, "", c.want)
		expect.Equal(t, strings.Count(stderr, "\n"), 1, c.want)
		expect.Contains(t, stderr, c.want)
	}
	expect.Result(os.Stat(filepath.Join(w.dir, "ssh.log"))).Fails(t, "", "the script called ssh")
	if stdout, _ := w.install(0, "-h"); !strings.HasPrefix(stdout, "usage: ") {
		t.Errorf("%q", stdout)
	}
}
