package deploytest

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// A pageHost carries out the steps of docs/install.md below a directory. It starts the processes of the units.
type pageHost struct {
	*world
	release string // the unpacked release
	started []string
	conf    []string // lines of redis.conf
	redis   *redistest.Server
	running map[string]*exec.Cmd
	log     testlog.Buffer // of all processes
}

// The steps of the page, in its order, install a system that runs tasks and serves the API. The commands that would
// change this machine, such as systemctl, are scripts; the test starts the programs of the units.
func TestStepsOfThePage(t *testing.T) {
	h := &pageHost{world: newWorld(t, "a"), running: map[string]*exec.Cmd{}}
	h.release = filepath.Join(t.TempDir(), "release")
	must(t, os.MkdirAll(h.release, 0o755))
	must(t, gobuild.Build(root, h.release+"/", "./cmd/tdf-server", "./cmd/tdf-worker", "./cmd/tdf"))
	for _, dir := range []string{"deploy", "configs"} {
		must(t, os.CopyFS(filepath.Join(h.release, dir), os.DirFS(filepath.Join(root, dir))))
	}
	write(t, filepath.Join(h.release, "my.cfg"), 0o600, configured(read(t, filepath.Join(root, "configs/worker.cfg"))))
	for _, dir := range []string{"usr/local/bin", "etc/systemd/system", "var/lib/tdf"} {
		must(t, os.MkdirAll(h.path("a", dir), 0o755))
	}
	for _, line := range stepsOf(read(t, filepath.Join(root, "docs/install.md"))) {
		h.step(line)
	}
	workers := []string{"tdf-worker@1", "tdf-worker@2", "tdf-worker@3", "tdf-worker@4"}
	expect.Equal(t, h.started, append([]string{"redis-server", "tdf-server", "tdf-server"}, workers...))

	write(t, filepath.Join(h.release, "p", "run.sh"), 0o755, "#!/bin/sh\necho done\n")
	h.shell("tdf --config /etc/tdf/server.cfg open --program ./p --grid 'n=1..8' --campaign c")
	h.shell("tdf --config /etc/tdf/server.cfg watch c --until-done")
	h.shell("tdf --config /etc/tdf/server.cfg doctor")
	api := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(h.log.String())
	answer := expect.Result(http.Get(api + "/healthz")).Value(t)
	defer answer.Body.Close()
	_, err := io.Copy(io.Discard, answer.Body)
	must(t, err)
	expect.Equal(t, answer.StatusCode, http.StatusOK)
}

// stepsOf returns the lines of code in the page's sections on the installation with systemd.
func stepsOf(page string) (lines []string) {
	wanted := []string{"## Redis", "## The server", "## The API, and tdf", "### On one machine"}
	section := ""
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			section = strings.TrimSpace(line)
		}
		if code, is := strings.CutPrefix(line, "    "); is && slices.Contains(wanted, section) {
			lines = append(lines, strings.TrimSpace(code))
		}
	}
	return lines
}

// configured sets the keys that the page asks to set.
func configured(text string) string {
	return strings.NewReplacer("host=localhost\n", "host=127.0.0.1\n", "password=None\n", "password=PASSWORD\n").Replace(text)
}

// step does what a line of the page says: it is a line of redis.conf, a key of server.cfg, or a command.
func (h *pageHost) step(line string) {
	h.Helper()
	if regexp.MustCompile(`^(bind|requirepass|appendonly|maxmemory-policy) `).MatchString(line) {
		h.conf = append(h.conf, line)
		return
	}
	server := h.path("a", "etc/tdf/server.cfg")
	if strings.HasPrefix(line, "listen=") {
		write(h.T, server, 0o600, strings.Replace(read(h.T, server), "\nlisten=\n", "\nlisten=127.0.0.1:0\n", 1))
		h.start("tdf-server") // the page says so in its text
		return
	}
	h.shell(line)
	if strings.HasSuffix(line, "/etc/tdf/server.cfg") && strings.HasPrefix(line, "install ") {
		write(h.T, server, 0o600, configured(read(h.T, server)))
	}
	log, _ := os.ReadFile(h.path("a", "log"))
	_ = os.Remove(h.path("a", "log"))
	for call := range strings.Lines(string(log)) {
		words := strings.Fields(call)
		if words[0] != "systemctl" || words[1] != "restart" && !slices.Contains(words, "--now") {
			continue
		}
		for _, unit := range words[2:] {
			if !strings.HasPrefix(unit, "-") {
				h.start(strings.TrimSuffix(unit, ".service"))
			}
		}
	}
}

// shell runs a command with the host's directories in place of those of this machine.
func (h *pageHost) shell(line string) {
	h.Helper()
	line = strings.NewReplacer(" /usr/", " $DESTDIR/usr/", " /etc/", " $DESTDIR/etc/", "-o tdf-server -g tdf-server ", "").Replace(line)
	if strings.HasPrefix(line, "apt-get ") {
		return
	}
	cmd := exec.CommandContext(h.Context(), "sh", "-ec", line)
	cmd.Dir, cmd.Env = h.release, h.environ()
	out, err := cmd.CombinedOutput()
	must(h.T, err, line, string(out))
}

func (h *pageHost) environ() []string {
	env := append(os.Environ(), "DESTDIR="+h.path("a", ""),
		"PATH="+filepath.Join(h.dir, ".bin")+":"+h.path("a", "usr/local/bin")+":"+os.Getenv("PATH"))
	if h.redis != nil {
		_, port, _ := net.SplitHostPort(h.redis.Addr)
		env = append(env, "TDF_CFG_REDIS_PORT="+port) // the page assumes 6379, which may be in use here
	}
	return env
}

// start starts the process of a unit, in place of one that runs.
func (h *pageHost) start(unit string) {
	h.Helper()
	h.started = append(h.started, unit)
	if unit == "redis-server" {
		var args []string
		for _, line := range h.conf {
			if key, value, _ := strings.Cut(line, " "); key != "bind" {
				args = append(args, "--"+key, value)
			}
		}
		h.redis = redistest.Start(h.T, redistest.Args(args...))
		return
	}
	expect.MustTrue(h.T, h.redis != nil, "Redis does not run yet")
	name, instance, _ := strings.Cut(unit, "@")
	file := name + ".service"
	if instance != "" {
		file = name + "@.service"
	}
	expect.Contains(h.T, read(h.T, h.path("a", "etc/systemd/system/"+file)), setting(h.T, file, "ExecStart")[0])
	words := strings.Fields(strings.NewReplacer("%H", "host", "%i", instance).Replace(setting(h.T, file, "ExecStart")[0]))
	h.stop(unit)
	cmd := exec.Command(h.path("a", words[0]), words[1], h.path("a", words[2]))
	cmd.Dir, cmd.Env, cmd.Stderr = h.path("a", "var/lib/tdf"), h.environ(), &h.log
	must(h.T, cmd.Start())
	h.running[unit] = cmd
	h.Cleanup(func() { h.stop(unit) })
}

func (h *pageHost) stop(unit string) {
	cmd := h.running[unit]
	if cmd == nil {
		return
	}
	delete(h.running, unit)
	must(h.T, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // it may not have begun to handle signals
}
