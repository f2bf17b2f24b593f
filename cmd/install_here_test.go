package cmd_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A machine is a directory with an unpacked release, on which deploy/install-here runs everything.
type machine struct {
	*testing.T
	release, data string
	settings      []string // of the first start
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	m := &machine{t, filepath.Join(dir, "release"), filepath.Join(dir, "data"), nil}
	must(t, os.CopyFS(filepath.Join(m.release, "deploy"), os.DirFS("../deploy")))
	for _, name := range []string{"tdf", "tdf-server", "tdf-worker"} {
		must(t, os.Symlink(built(t, name), filepath.Join(m.release, name)))
	}
	fake := "#!/bin/sh\necho \"$PROMETHEUS_URL $DASHBOARDS $GF_PATHS_PROVISIONING $GF_SERVER_HTTP_ADDR\"\nexec sleep infinity\n"
	must(t, os.WriteFile(filepath.Join(m.release, "grafana-server"), []byte(fake), 0o755))
	for _, name := range []string{"REDIS_PORT", "TDF_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT"} {
		m.settings = append(m.settings, name+"="+freePort(t))
	}
	t.Cleanup(func() { _, _ = m.run("stop") })
	return m
}

func (m *machine) run(verb string) (string, error) {
	cmd := exec.Command(filepath.Join(m.release, "deploy/install-here"), verb, m.data)
	if verb == "stop" {
		cmd.Args = []string{cmd.Path, m.data, verb} // the directory may come first
	}
	cmd.Env = append(append(environment(), m.settings...), "TDF_WORKERS=2", "PATH="+m.release+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) must(verb string) string {
	m.Helper()
	out, err := m.run(verb)
	must(m, err, verb, out, m.logs())
	return out
}

func (m *machine) logs() (all string) {
	names, _ := filepath.Glob(filepath.Join(m.data, "log/*"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		all += name + ":\n" + string(text)
	}
	return all
}

func (m *machine) file(name string) string {
	m.Helper()
	return string(expect.Result(os.ReadFile(filepath.Join(m.data, name))).Value(m))
}

// tdf runs tdf with the configuration of the machine.
func (m *machine) tdf(args ...string) string {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), built(m.T, "tdf"), append([]string{"--config", filepath.Join(m.data, "tdf.cfg")}, args...)...)
	cmd.Env = environment()
	out, err := cmd.Output()
	must(m, err, args)
	return strings.TrimSpace(string(out))
}

// get returns the answer of a server of the machine.
func (m *machine) get(port int, path, token, body string) string {
	m.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	address := "http://127.0.0.1:" + strings.Split(m.settings[port], "=")[1] + path
	r := expect.Result(http.NewRequestWithContext(m.Context(), method, address, strings.NewReader(body))).Value(m)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	return string(expect.Result(io.ReadAll(answer.Body)).Value(m))
}

// install-here starts everything, may be repeated, starts a killed component again, and stops all of it. Tasks outlive a stop.
func TestInstallHere(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	out, err := m.run("status")
	expect.Fails(t, err, "exit status 3", out)
	expect.Contains(t, out, "nothing is installed in "+m.data)
	out = m.must("start")
	expect.Contains(t, out, "Prometheus http://127.0.0.1:")
	expect.Equal(t, strings.Count(m.must("status"), " runs;"), 7, "redis, server, serve, 2 workers, prometheus, grafana")
	expect.Contains(t, m.file("redis.conf"), "appendonly yes")
	expect.Equal(t, expect.Result(os.Stat(filepath.Join(m.data, "passwords"))).Value(t).Mode(), os.FileMode(0o600))
	eventually(t, "Grafana has got its files", func() bool {
		return strings.HasSuffix(m.file("log/grafana"), "/deploy/grafana/dashboards "+m.release+"/deploy/grafana/provisioning 127.0.0.1\n")
	})
	program := filepath.Join(t.TempDir(), "double/run.sh")
	must(t, os.MkdirAll(filepath.Dir(program), 0o755))
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho $(($1 * 2))\n"), 0o755))
	eventually(t, "the API answers", func() bool { return m.get(1, "/readyz", "", "") != "" })
	token := m.tdf("token", "add", "me", "--role", "operator")
	expect.Contains(t, m.get(1, "/api/v1/tasks", token, `{"program": "double", "source": "rsync:`+program+`", "input": "21"}`), `"ids":[1]`)
	eventually(t, "the task is done", func() bool { return m.get(1, "/api/v1/tasks/1/output", token, "") == "42\n" })
	eventually(t, "Prometheus has read the metrics, and knows the alerts", func() bool {
		return strings.Contains(m.get(2, `/api/v1/query?query=tdf_tasks{state="succeeded"}`, "", ""), `,"1"]`) &&
			strings.Contains(m.get(2, "/api/v1/rules", "", ""), "TDFNoServer")
	})

	expect.NotContains(t, m.logs(), "has ended; it starts again", "a component cannot run beside the others")

	before := m.file("run/server.pid") + m.file("run/worker-1.pid") + m.file("token")
	m.must("start")
	expect.Equal(t, m.file("run/server.pid")+m.file("run/worker-1.pid")+m.file("token"), before, "a second start changes nothing")

	worker := m.tdf("workers", "--json")
	pid := 0
	for line := range strings.Lines(worker) {
		if i := strings.Index(line, `"pid":`); pid == 0 && i >= 0 {
			fmt.Sscanf(line[i+len(`"pid":`):], "%d", &pid)
		}
	}
	expect.MustTrue(t, pid > 0, worker)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, "the killed worker runs again", func() bool {
		now := m.tdf("workers", "--json")
		return strings.Count(now, "\n") == strings.Count(worker, "\n") && !strings.Contains(now, fmt.Sprintf(`"pid":%d,`, pid))
	})

	expect.Contains(t, m.file("run/worker-1.ends")+m.file("run/worker-2.ends"), "1 ", "the killed worker has ended once")
	must(t, os.WriteFile(filepath.Join(m.data, "run/grafana.ends"), fmt.Appendf(nil, "3 %d\n", time.Now().Unix()+3600), 0o600))
	out, err = m.run("status")
	expect.Fails(t, err, "exit status 3", out)
	expect.Contains(t, out, "grafana ends again and again, 3 times so far")

	m.must("stop")
	out, err = m.run("status")
	expect.Fails(t, err, "exit status 3")
	expect.Equal(t, strings.Count(out, " does not run;"), 7)
	m.must("stop")
	m.must("start")
	expect.Contains(t, m.tdf("ls", "--state", "succeeded"), "double")
	m.must("stop")
	_, err = m.run("restart")
	expect.True(t, err != nil, "an unknown command")
}

// If another program has the port of Redis, the script says so and leaves nothing behind.
func TestInstallHereBesideAnotherRedis(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	l := expect.Result(net.Listen("tcp", "127.0.0.1:0")).Value(t)
	defer l.Close()
	m.settings[0] = fmt.Sprintf("REDIS_PORT=%d", l.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("-NOAUTH Authentication required.\r\n"))
			c.Close()
		}
	}()
	out, err := m.run("start")
	expect.Fails(t, err, "")
	expect.Contains(t, out, "Redis does not answer at 127.0.0.1:")
	out, err = m.run("status")
	expect.Fails(t, err, "")
	expect.NotContains(t, out, " runs;")
}
