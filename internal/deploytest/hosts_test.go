package deploytest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A world simulates hosts with directories, and ssh with a script.
type world struct {
	*testing.T
	dir  string // contains a directory for each host
	bin  string // contains the script ssh
	dist string // contains the archives of a release
}

// ssh runs a command with the host's directory as DESTDIR, and logs its own arguments.
const ssh = `#!/bin/sh
echo "$*" >>"$TEST_HOSTS/ssh.log"
while [ "$1" != -- ]; do shift; done
export DESTDIR="$TEST_HOSTS/$2"
shift 2
[ -d "$DESTDIR" ] || { echo "Warning: something else" >&2; echo "ssh: connect to host: Connection refused" >&2; exit 255; }
export PATH="$TEST_HOSTS/.bin:$PATH"
exec sh -c "$*"
`

// commands maps names of a host's commands to the scripts that replace them. The real commands would change or describe
// this machine.
var commands = map[string]string{
	"uname":   `cat "$DESTDIR/machine" 2>/dev/null || echo Linux x86_64`,
	"id":      `[ "$2" = tdf ] || { cat "$DESTDIR/uid" 2>/dev/null && [ -z "$SUDO" ] || echo 0; exit; }; [ -e "$DESTDIR/etc/passwd" ]`,
	"useradd": `echo "useradd $*" >>"$DESTDIR/log"; : >"$DESTDIR/etc/passwd"`,
	"chown":   `echo "$1" >"$2.owner"`,
	"sleep":   ``,
	"sudo":    `[ "$1" = -n ] || exit 1; shift; [ ! -e "$DESTDIR/nosudo" ] || { echo "sudo: a password is required" >&2; exit 1; }; rm "$DESTDIR/uid"; SUDO=1 exec "$@"`,
	"journalctl": `echo "tdf-worker: worker.cfg: [tdf] namespace: missing"
`,
	"systemctl": `
echo "systemctl $*" >>"$DESTDIR/log"
wants=$DESTDIR/etc/systemd/system/multi-user.target.wants
mkdir -p "$wants"
verb=$1
shift
for name; do
	case $verb in
	enable) case $name in tdf-*) : >"$wants/$name" ;; esac ;;
	disable) case $name in tdf-*) rm "$wants/$name" ;; esac ;;
	is-active) [ ! -e "$DESTDIR/broken" ] || exit 3 ;;
	restart) [ ! -e "$DESTDIR/hangs" ] || { echo "Job for $name failed." >&2; exit 1; } ;;
	esac
done`,
}

func newWorld(t *testing.T, hosts ...string) *world {
	dir := t.TempDir()
	w := &world{t, filepath.Join(dir, "hosts"), filepath.Join(dir, "bin"), filepath.Join(dir, "dist")}
	write(t, filepath.Join(w.bin, "ssh"), 0o755, ssh)
	for name, text := range commands {
		write(t, filepath.Join(w.dir, ".bin", name), 0o755, "#!/bin/sh\n"+text+"\n")
	}
	for _, host := range hosts {
		must(t, os.MkdirAll(filepath.Join(w.dir, host, "run", "systemd", "system"), 0o755))
	}
	w.release("v1", "amd64")
	return w
}

// release makes an archive like those of scripts/dist. The command in this archive only prints its version.
func (w *world) release(version, arch string) {
	w.Helper()
	name := "tdf_" + version + "_linux_" + arch
	tree := filepath.Join(w.TempDir(), name)
	write(w.T, filepath.Join(tree, "tdf-worker"), 0o755, "#!/bin/sh\necho tdf-worker "+version+" "+arch+"\n")
	must(w.T, os.CopyFS(filepath.Join(tree, "deploy"), os.DirFS(filepath.Join(root, "deploy"))))
	must(w.T, os.MkdirAll(w.dist, 0o755))
	command(w.T, w.dist, "tar", "-czf", name+".tar.gz", "-C", filepath.Dir(tree), name)
	command(w.T, w.dist, "sh", "-c", "sha256sum *.tar.gz >SHA256SUMS")
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	must(t, err, name, out)
	return string(out)
}

// install runs install-workers, and checks its exit status.
func (w *world) install(status int, args ...string) (stdout, stderr string) {
	w.Helper()
	script, err := filepath.Abs(filepath.Join(root, "deploy", "install-workers"))
	must(w.T, err)
	cmd := exec.CommandContext(w.Context(), script, append([]string{"-d", w.dist}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+w.bin+":"+os.Getenv("PATH"), "TEST_HOSTS="+w.dir)
	cmd.Dir = w.TempDir()
	var out, bad strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		w.Fatal(err)
	}
	expect.Equal(w, cmd.ProcessState.ExitCode(), status, args, "exit status", &out, &bad)
	return out.String(), bad.String()
}

func (w *world) path(host, name string) string { return filepath.Join(w.dir, host, name) }

// log returns the commands that ran on the host since the last call.
func (w *world) log(host string) string {
	w.Helper()
	text := read(w.T, w.path(host, "log"))
	must(w.T, os.Remove(w.path(host, "log")))
	return text
}

func (w *world) config(text string) string {
	name := filepath.Join(w.TempDir(), "my worker.cfg")
	write(w.T, name, 0o644, text)
	return name
}
