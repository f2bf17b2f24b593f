package deploytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A disposable is a root directory with dpkg's files and those of users, and nothing else.
type disposable struct {
	*testing.T
	dir string
}

// installed is the record of a package on which that of TDF depends.
const installed = "Package: passwd\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n\n"

func newDisposable(t *testing.T) *disposable {
	d := &disposable{t, t.TempDir()}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shadow": "root:*:1::::::\n", "etc/gshadow": "root:*::\n",
		"var/lib/dpkg/status": installed, "var/lib/dpkg/info/format": "1\n", "var/lib/dpkg/updates/.keep": "",
	} {
		write(t, d.path(name), 0o644, text)
	}
	return d
}

func (d *disposable) path(name string) string { return filepath.Join(d.dir, name) }

// dpkg runs dpkg on the root. The scripts of packages run outside of it, with DPKG_ROOT, because it has no shell.
func (d *disposable) dpkg(args ...string) {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "dpkg", append([]string{"--root=" + d.dir, "--force-script-chrootless"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/sbin:"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	expect.MustTrue(d, err == nil, args, err, string(out))
}

// owned checks the owner and the mode of a file.
func (d *disposable) owned(name, owner string, mode os.FileMode) {
	d.Helper()
	info := expect.Result(os.Stat(d.path(name))).Value(d.T)
	s := info.Sys().(*syscall.Stat_t)
	expect.Equal(d, fmt.Sprintf("%d:%d", s.Uid, s.Gid), owner, name)
	expect.Equal(d, info.Mode().Perm(), mode, name)
}

// The package installs the commands, units that name them, a user for servers and one for workers, and configurations that only they can
// read. An upgrade and a removal keep the changes of an administrator. A purge removes all but the user.
func checkDeb(t *testing.T, deb string) {
	if os.Geteuid() != 0 {
		t.Skip("dpkg needs root")
	}
	d := newDisposable(t)
	d.dpkg("--install", deb)
	owners := map[string]string{}
	for unit, name := range map[string]string{"tdf-server": "tdf-server", "tdf-worker@": "tdf"} {
		user := strings.Split(lineOf(t, read(t, d.path("etc/passwd")), name+":"), ":")
		expect.Equal(t, user[5:], []string{"/var/lib/tdf", "/usr/sbin/nologin"})
		owners[unit] = user[2] + ":" + user[3]
		expect.NotEqual(t, user[2], "0")
		expect.Contains(t, read(t, d.path("usr/lib/systemd/system/"+unit+".service")), "\nUser="+name+"\nGroup="+name+"\n")
	}
	expect.NotEqual(t, owners["tdf-server"], owners["tdf-worker@"], "programs can read the configuration of the server")
	for _, name := range []string{"tdf", "tdf-server", "tdf-worker"} {
		d.owned("usr/bin/"+name, "0:0", 0o755)
	}
	for unit, config := range map[string]string{"tdf-server": "server.cfg", "tdf-worker@": "worker.cfg"} {
		text := read(t, d.path("usr/lib/systemd/system/"+unit+".service"))
		words := strings.Fields(strings.TrimPrefix(lineOf(t, text, "ExecStart="), "ExecStart="))
		expect.Result(os.Stat(d.path(words[0]))).OK(t, unit)
		expect.Equal(t, words[2], "/etc/tdf/"+config)
		d.owned(words[2], owners[unit], 0o600)
	}

	const changed = "[tdf]\nnamespace=mine\n"
	config, link := d.path("etc/tdf/server.cfg"), d.path("etc/systemd/system/multi-user.target.wants/tdf-worker@1.service")
	write(t, config, 0o600, changed)
	write(t, d.path("etc/tdf/worker.env"), 0o600, "x")
	write(t, d.path("var/lib/tdf/out"), 0o600, "x")
	write(t, link, 0o644, "")
	d.dpkg("--install", deb)
	expect.Equal(t, read(t, config), changed, "after an upgrade")
	d.owned("etc/tdf/server.cfg", owners["tdf-server"], 0o600)
	d.dpkg("--remove", "tdf")
	expect.Equal(t, read(t, config), changed, "after a removal")
	for _, name := range []string{"usr/bin/tdf-server", "usr/lib/systemd/system/tdf-server.service", "usr/share/doc/tdf"} {
		expect.Result(os.Stat(d.path(name))).FailsWith(t, os.ErrNotExist, name)
	}
	expect.Result(os.Stat(link)).OK(t)
	d.dpkg("--install", deb)
	expect.Equal(t, read(t, config), changed, "after another installation")
	d.dpkg("--purge", "tdf")
	for _, name := range []string{"etc/tdf", "var/lib/tdf", "usr/bin/tdf"} {
		expect.Result(os.Stat(d.path(name))).FailsWith(t, os.ErrNotExist, name)
	}
	expect.Result(os.Stat(link)).FailsWith(t, os.ErrNotExist)
	expect.NotContains(t, read(t, d.path("var/lib/dpkg/status")), "Package: tdf\n")
}

// lineOf returns the line of a text with this beginning.
func lineOf(t *testing.T, text, beginning string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, beginning) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no line begins with %s:\n%s", beginning, text)
	return ""
}
