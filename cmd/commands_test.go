package cmd_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
)

var (
	eventually = expect.Eventually
	must       = expect.NoError
)

// bin is the directory of the built commands; "" before the first call of build.
var bin string

var build = sync.OnceValue(func() (err error) {
	bin, err = os.MkdirTemp("", "tdf-commands-*")
	if err != nil {
		return err
	}
	return gobuild.Build(".", bin, "./tdf", "./tdf-server", "./tdf-worker", "../examples/mapreduce")
})

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(bin)
	os.Exit(status)
}

// built returns the path of a command. The first call builds all commands.
func built(t testing.TB, command string) string {
	t.Helper()
	must(t, build())
	return filepath.Join(bin, command)
}

// A process is a command that a test has started.
type process struct {
	testing.TB
	cmd    *exec.Cmd
	stdout testlog.Buffer
	stderr testlog.Buffer
	ended  chan struct{}
}

func start(t testing.TB, command string, args ...string) *process {
	t.Helper()
	return launch(t, exec.Command(built(t, command), args...), environment(), nil)
}

func launch(t testing.TB, cmd *exec.Cmd, env []string, attr *syscall.SysProcAttr) *process {
	t.Helper()
	p := &process{TB: t, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Env, p.cmd.SysProcAttr = env, attr
	must(t, p.cmd.Start())
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// environment returns the test's environment without TDF's variables.
func environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		ofMake := name == "MAKELEVEL" || name == "MAKEFLAGS" || name == "MFLAGS" // make test has started the tests
		if !ofMake && !strings.HasPrefix(name, "TDF_") {
			env = append(env, variable)
		}
	}
	return env
}

func (p *process) signal(s os.Signal) {
	p.Helper()
	must(p, p.cmd.Process.Signal(s))
}

// exits waits for the end of the process. Then it checks the exit status, and that stderr contains the given text.
func (p *process) exits(status int, text string) {
	p.Helper()
	<-p.ended
	expect.Equal(p, p.cmd.ProcessState.ExitCode(), status)
	expect.Contains(p, p.stderr.String(), text, status)
}

// logs returns when the process has written the given text to stderr.
func (p *process) logs(text string) {
	p.Helper()
	eventually(p, text, func() bool {
		expect.MustTrue(p, !p.hasEnded(), p.cmd, "has ended", p.stderr.String())
		return strings.Contains(p.stderr.String(), text)
	})
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// A worker runs a task, and a server with an embedded Redis settles the task.
func TestEndToEnd(t *testing.T) {
	server, port := embeddedServer(t)
	dir := t.TempDir()
	workerFile := write(t, "[tdf]\nnamespace=N\n[redis]\nhost=127.0.0.1\nport=%s\n[worker]\ndirectory=%s\n[log]\nformat=json\n", port, dir)
	source := filepath.Join(t.TempDir(), "run.sh")
	must(t, os.WriteFile(source, []byte("echo \"$TDF_WORKER: $1\"\n"), 0o644))

	server.logs("embedded Redis without persistence")
	server.logs("msg=serving")
	worker := start(t, "tdf-worker", "w-%h", workerFile)
	worker.logs(`"msg":"working"`)

	store := connect(t, "127.0.0.1:"+port, "N")
	ids := expect.Result(store.Open(t.Context(), "test", task.Defaults("p", "rsync:"+source, "'a b'"))).Value(t)
	var one *task.Task
	eventually(t, "the task is settled", func() bool {
		stored := expect.Result(store.ReadOne(t.Context(), ids[0], redisstate.Want{Fields: redisstate.Whole})).Value(t)
		one = stored.Task
		return one.State.Settled()
	})
	host := expect.Result(os.Hostname()).Value(t)
	want := "w-" + host + ": a b\n"
	expect.Equal(t, one.State, task.Succeeded)
	expect.Equal(t, one.LastOutput(), want)
	worker.signal(syscall.SIGTERM)
	worker.exits(0, `"msg":"stopped"`)
	server.signal(syscall.SIGINT)
	server.exits(0, "msg=stopped")
	expect.Equal(t, worker.stdout.String()+server.stdout.String(), "", "stdout")
}

// If the worker has grace=inf, a second signal still ends the running program. Then the worker releases the task.
func TestSecondSignal(t *testing.T) {
	ns := redistest.Namespace(t)
	addr := redistest.Shared(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "p"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "p", "run.sh"), []byte("#!/bin/sh\ntrap '' TERM\n>begun\nwhile :; do sleep 1; done\n"), 0o755))
	store := connect(t, addr, ns)
	ids := expect.Result(store.Open(t.Context(), "test", task.Defaults("p", "rsync:/nowhere/run.sh", ""))).Value(t)
	worker := start(t, "tdf-worker", "w", write(t, "[tdf]\nnamespace=%s\n[redis]\nport=%s\n[worker]\ndirectory=%s\ngrace=inf\nkill_grace=1000\n", ns, port, dir))
	eventually(t, "the program runs", func() bool {
		_, err := os.Stat(filepath.Join(dir, "p", "begun"))
		return err == nil
	})
	worker.signal(syscall.SIGINT)
	worker.logs("stopping: nothing more is claimed")
	worker.signal(syscall.SIGINT)
	worker.exits(0, "released")
	stored := expect.Result(store.ReadOne(t.Context(), ids[0], redisstate.Want{Fields: redisstate.Whole})).Value(t)
	one := stored.Task
	expect.Equal(t, one.State, task.Open)
	expect.Equal(t, one.Releases, 1)
}

func TestArguments(t *testing.T) {
	for _, command := range []string{"tdf-server", "tdf-worker"} {
		for _, c := range []struct {
			args           []string
			status         int
			stdout, stderr string
		}{
			{[]string{"-h"}, 0, "usage: " + command + " [FLAGS] NAME FILE.cfg", ""},
			{[]string{"--help"}, 0, "docs/configuration.md", ""},
			{[]string{"--version"}, 0, command + " ", ""},
			{nil, 2, "", "got 0 arguments; want NAME and FILE.cfg\nusage: " + command},
			{[]string{"a"}, 2, "", "got 1 arguments"},
			{[]string{"a", "b", "c"}, 2, "", "got 3 arguments"},
			{[]string{"--verbose", "a", "b"}, 2, "", "-verbose"},
			{[]string{"", "b"}, 2, "", "invalid name \"\": want 1 to 200 bytes"},
			{[]string{"a\nb", "b"}, 2, "", "control characters"},
			{[]string{"a", "/no/such.cfg"}, 2, "", command + ": /no/such.cfg: cannot be read: no such file or directory; expected a configuration file\n"},
			{[]string{"a", write(t, "[tdf]\nnamespace=N\n[worker]\nlease=x\n")}, 2, "", `[worker] lease: "x" is not a number of seconds from 0.1 up`},
		} {
			p := start(t, command, c.args...)
			p.exits(c.status, c.stderr)
			got := p.stdout.String()
			expect.Contains(t, got, c.stdout)
			if c.stdout == "" {
				expect.Equal(t, got, "", c.stdout)
			}
		}
	}
	start(t, "tdf-worker", "a/b", "f").exits(2, "contains a slash")
	start(t, "tdf-worker", "w", write(t, "[tdf]\nnamespace=N\n[redis]\nhost=embedded\n")).exits(2, `"embedded" is only for the server`)
}

// If Redis refuses the login, or if TDF cannot use the namespace, tdf-server and tdf-worker end at once.
func TestRefused(t *testing.T) {
	locked := redistest.Start(t, redistest.Args("--requirepass", "secret")).Addr
	shared := redistest.Shared(t)
	rdb := redistest.Client(t, redis.Options{Addr: shared})
	newer, foreign := redistest.Namespace(t), redistest.Namespace(t)
	must(t, rdb.Set(t.Context(), newer+":schema", 99, 0).Err())
	must(t, rdb.Set(t.Context(), foreign+":running", "mine", 0).Err())
	for name, c := range map[string]struct{ addr, more, namespace, want string }{
		"no password":    {locked, "", "N", "it requires a password: see [redis] password. If tdf up runs it, run this command as its user, with the same HOME"},
		"wrong password": {locked, "password=wrong", "N", "the password (or the username) is wrong"},
		"wrong db":       {shared, "db=4711", "N", "it has no database with this number: see [redis] db"},
		"not a Redis":    {notRedis(t), "", "N", "the server at this address is not a Redis: see [redis] host and port"},
		"newer schema":   {shared, "", newer, "has layout version 99, and this release knows version"},
		"other keys":     {shared, "", foreign, "the key " + foreign + ":running is a string and not a zset"},
	} {
		for _, command := range []string{"tdf-server", "tdf-worker"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				_, port, _ := net.SplitHostPort(c.addr)
				file := write(t, "[redis]\nhost=127.0.0.1\nport=%s\n%s\n[tdf]\nnamespace=%s\n", port, c.more, c.namespace)
				p := start(t, command, "a", file)
				p.exits(2, c.want)
				last := lastLine(p.stderr.String())
				expect.True(t, strings.HasPrefix(last, command+": redis at 127.0.0.1:"+port+": "), "the last line is", last)
			})
		}
	}
}

func TestStopWithoutRedis(t *testing.T) {
	file := write(t, "[redis]\nport=1\n[tdf]\nnamespace=N\n") // no process listens on port 1
	for _, command := range []string{"tdf-server", "tdf-worker"} {
		p := start(t, command, "a", file)
		p.logs("nothing listens there")
		p.signal(syscall.SIGTERM)
		p.exits(0, "")
	}
}

func TestEmbeddedAddressInUse(t *testing.T) {
	_, port, _ := net.SplitHostPort(redistest.Shared(t))
	file := write(t, "[redis]\nhost=embedded\nport=%s\n[tdf]\nnamespace=N\n", port)
	start(t, "tdf-server", "s", file).exits(1, "tdf-server: start embedded Redis: the address 127.0.0.1:"+port+" is in use; choose another [redis] port")
}

// A server whose notices could not be signed does not start, because otherwise a wrong path would show only when a notice is not delivered.
func TestMissingSecretOfNotices(t *testing.T) {
	_, port, _ := net.SplitHostPort(redistest.Shared(t))
	file := write(t, "[redis]\nport=%s\n[tdf]\nnamespace=%s\n[notify]\nwebhook=https://hooks.example.org/\nwebhook_secret_file=/no/such.secret\n",
		port, redistest.Namespace(t))
	start(t, "tdf-server", "s", file).exits(2, file+": [notify] webhook_secret_file: open /no/such.secret: no such file or directory")
}

// A starting server warns of Redis settings that can lose tasks.
func TestWarnings(t *testing.T) {
	careless := redistest.Start(t, redistest.Args("--maxmemory-policy", "allkeys-lru")).Addr
	careful := redistest.Start(t, redistest.AOF("everysec")).Addr
	for addr, want := range map[string]bool{careless: true, careful: false} {
		_, port, _ := net.SplitHostPort(addr)
		p := start(t, "tdf-server", "s", write(t, "[redis]\nport=%s\n[tdf]\nnamespace=N\n", port))
		p.logs("msg=serving")
		for _, text := range []string{"maxmemory-policy=allkeys-lru", "append-only file"} {
			expect.Equal(t, strings.Contains(p.stderr.String(), text), want, text, "in the log", p.stderr.String())
		}
		p.signal(syscall.SIGTERM)
		p.exits(0, "")
	}
}

// notRedis starts a server that answers like a web server, and returns its port.
func notRedis(t *testing.T) string {
	t.Helper()
	l := expect.Result(net.Listen("tcp", "127.0.0.1:0")).Value(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
				io.Copy(io.Discard, c) // read everything, because Close would reset a connection with unread bytes
			}()
		}
	}()
	return l.Addr().String()
}

func connect(t *testing.T, addr, namespace string) *redisstate.Store {
	t.Helper()
	tcp := expect.Result(net.ResolveTCPAddr("tcp", addr)).Value(t)
	store := expect.Result(redisstate.Connect(t.Context(), config.Redis{Host: tcp.IP.String(), Port: tcp.Port}, namespace, slog.New(slog.DiscardHandler))).Value(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// embeddedServer starts a server whose embedded Redis listens on a free port.
func embeddedServer(t *testing.T) (p *process, port string) {
	t.Helper()
	for {
		port = freePort(t)
		p = start(t, "tdf-server", "server", write(t, "[tdf]\nnamespace=N\n[redis]\nhost=embedded\nport=%s\n", port))
		eventually(t, "the server serves or ends", func() bool { return p.hasEnded() || strings.Contains(p.stderr.String(), "msg=serving") })
		if !p.hasEnded() || !strings.Contains(p.stderr.String(), "is in use") {
			return p, port
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l := expect.Result(net.Listen("tcp", "127.0.0.1:0")).Value(t)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func write(t testing.TB, format string, args ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.cfg")
	must(t, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600))
	return path
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
