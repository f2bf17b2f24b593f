package local

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// freeAddr returns an address that is free at the moment.
func freeAddr() (config.Redis, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return config.Redis{}, err
	}
	defer l.Close()
	return config.Redis{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}, nil
}

// atFree starts a Redis at a free address. If another process takes the address meanwhile, atFree tries another
// address.
func atFree(start func(at config.Redis) (*Redis, error)) (*Redis, config.Redis, error) {
	for {
		at, err := freeAddr()
		if err != nil {
			return nil, at, err
		}
		r, err := start(at)
		if !errors.Is(err, ErrTaken) {
			return r, at, err
		}
	}
}

func serve(t *testing.T, dir, password string) (*Redis, config.Redis) {
	t.Helper()
	r, at, err := atFree(func(at config.Redis) (*Redis, error) {
		at.Password = password
		return Serve(at, dir)
	})
	expect.NoError(t, err)
	at.Password = password
	return r, at
}

// embeddedRedis starts an embedded Redis that ends with the test.
func embeddedRedis(t *testing.T) config.Redis {
	t.Helper()
	r, at, err := atFree(startEmbedded)
	expect.NoError(t, err)
	t.Cleanup(r.Stop)
	return at
}

func client(t *testing.T, at config.Redis) *redis.Client {
	c := redistest.Client(t, redis.Options{Addr: at.Addr(), Password: at.Password})
	return c
}

// serverPID returns the process id of a Redis.
func serverPID(t *testing.T, c *redis.Client) int {
	t.Helper()
	for line := range strings.Lines(c.Info(t.Context(), "server").Val()) {
		if pid, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	t.Fatal("INFO has no process_id")
	return 0
}

// waitForEnd waits for the end of a process. A zombie counts as ended.
func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d ends", pid), func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// A redis-server keeps its data across a restart, and requires its password.
func TestServeKeepsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a 'dir'", "made")
	const password = "p \"'\\#\xff\n;"
	r, at := serve(t, dir, password)
	c := client(t, at)
	expect.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	for name, want := range map[string]string{"appendonly": "yes", "save": "", "maxmemory-policy": "noeviction", "bind": "127.0.0.1", "hash-max-listpack-value": "1024", "zset-max-listpack-entries": "32"} {
		expect.Equal(t, c.ConfigGet(t.Context(), name).Val()[name], want, name)
	}
	args := expect.Result(os.ReadFile("/proc/" + strconv.Itoa(serverPID(t, c)) + "/cmdline")).Value(t)
	expect.NotContains(t, string(args), "p \"")
	r.Stop()
	expect.NoError(t, r.Err(), "redis-server ended")
	r, at = serve(t, dir, "")
	defer r.Stop()
	expect.Equal(t, client(t, at).Get(t.Context(), "k").Val(), "v", "after a restart k")
}

// Serve gives a redis-server all settings that docs/operations.md and docs/tutorial.md recommend, and that deploy/redis.conf has.
func TestServerConfigMatchesThePages(t *testing.T) {
	has := func(setting string) bool {
		name, value, _ := strings.Cut(setting, " ")
		return strings.Contains(serverConfig(config.Redis{}, "", true), "\n"+name+" "+quote(value)+"\n")
	}
	settings := func(page, heading string, setting *regexp.Regexp) (found []string) {
		text := expect.Result(os.ReadFile(filepath.Join("../../docs", page))).Value(t)
		_, section, _ := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, m := range setting.FindAllStringSubmatch(section, -1) {
			found = append(found, m[1])
		}
		return found
	}
	table := settings("operations.md", "\n## Redis\n", regexp.MustCompile("(?m)^\\| `([a-z-]+ [a-z0-9]+)` \\|"))
	file := settings("tutorial.md", "\n## Add a second machine\n", regexp.MustCompile(`(?m)^   ((?:append|hash|zset|maxmemory)[a-z-]* \S+)$`))
	shipped := []string{"appendonly yes"}
	for _, t := range conn.Tunings() {
		shipped = append(shipped, fmt.Sprint(t.Name, " ", t.Value))
	}
	var deployed []string
	for line := range strings.Lines(string(expect.Result(os.ReadFile("../../deploy/redis.conf")).Value(t))) {
		if setting := strings.TrimSpace(line); setting != "" && setting[0] != '#' {
			deployed = append(deployed, strings.ReplaceAll(setting, `""`, ""))
		}
	}
	for page, found := range map[string][]string{"operations.md": table, "tutorial.md": file, "deploy/redis.conf": deployed} {
		for _, setting := range shipped {
			expect.True(t, slices.Contains(found, setting), page, "recommends", found, "without", setting)
		}
		for _, setting := range found {
			expect.True(t, has(setting), page, "recommends", setting, "but serverConfig does not contain it")
		}
	}
}

func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	r, at := serve(t, dir, "")
	defer r.Stop()
	expect.Result(Serve(at, t.TempDir())).FailsWith(t, ErrTaken, "a second redis-server on the port")
	expect.Result(Temporary(at)).FailsWith(t, ErrTaken, "a Redis on the port")
	other := expect.Result(freeAddr()).Value(t)
	expect.Result(Serve(other, dir)).FailsWith(t, ErrInUse, "a second redis-server in the directory")
	snapshot := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(snapshot, "dump.rdb"), nil, 0o644))
	expect.Result(Serve(other, snapshot)).FailsWith(t, ErrSnapshot, "in a directory with a snapshot")
	t.Setenv("PATH", snapshot)
	expect.Result(Serve(other, t.TempDir())).FailsWith(t, ErrNoProgram, "without a redis-server")
}

// If a redis-server ends without Stop, Err returns the cause.
func TestServeEnds(t *testing.T) {
	r, at := serve(t, t.TempDir(), "")
	client(t, at).Do(t.Context(), "shutdown", "nosave", "force")
	<-r.Ended()
	err := r.Err()
	expect.Fails(t, err, "redis-server has ended")
	expect.Contains(t, err.Error(), "User requested shutdown")
	r.Stop()
	broken := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(broken, "appendonlydir"), []byte("no directory"), 0o644))
	r, _ = serve(t, broken, "")
	<-r.Ended()
	expect.Fails(t, r.Err(), "appendonlydir", "redis-server ended")
}

// When its parent process is killed, the redis-server ends. A Ctrl-C on the terminal does not reach the redis-server.
func TestServeDiesWithItsParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), servesIn+"="+dir)
	parent.Stderr = os.Stderr
	out := expect.Result(parent.StdoutPipe()).Value(t)
	in := expect.Result(parent.StdinPipe()).Value(t)
	defer in.Close()
	expect.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	expect.MustTrue(t, err == nil, line, err)
	pid := childOf(t, parent.Process.Pid)
	expect.Result(syscall.Getpgid(pid)).Is(t, pid, "redis-server's process group")
	expect.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	waitForEnd(t, pid)
	eventually(t, "the directory's lock is free", func() bool { // redis-server releases the lock when its last thread ends
		at := expect.Result(freeAddr()).Value(t)
		r, err := Serve(at, dir)
		if err == nil {
			r.Stop()
		}
		return err == nil
	})
}

// childOf finds the only child of a process. It searches all processes, because not every kernel lists children.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	all := expect.Result(filepath.Glob("/proc/[0-9]*/stat")).Value(t)
	for _, path := range all {
		text, _ := os.ReadFile(path) // fails if the process has ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			return expect.Result(strconv.Atoi(filepath.Base(filepath.Dir(path)))).Value(t)
		}
	}
	t.Fatalf("process %d has no child", parent)
	return 0
}

// The channel of Ended is closed after Stop, also for the embedded Redis.
func TestEmbeddedRedisEnds(t *testing.T) {
	r := expect.Result(startEmbedded(config.Redis{Host: "127.0.0.1", Port: 0})).Value(t)
	r.Stop()
	<-r.Ended()
	expect.NoError(t, r.Err())
	r.Stop()
}

// Another process takes the port after Serve has checked it, and before redis-server listens. It gets no connection, and so
// no password.
func TestPortTakenBeforeRedisListens(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\ntouch started\nwhile ! [ -e taken ]; do sleep 0.01; done\nsleep 0.2\necho cannot bind >&2\nexit 1\n"
	expect.NoError(t, os.WriteFile(filepath.Join(bin, "redis-server"), []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	at := expect.Result(freeAddr()).Value(t)
	at.Password = "secret"
	served := make(chan *Redis)
	go func() {
		r, _ := Serve(at, dir)
		served <- r
	}()
	eventually(t, "redis-server starts", func() bool {
		_, err := os.Stat(filepath.Join(dir, "started"))
		return err == nil
	})
	other, err := net.Listen("tcp", at.Addr())
	if err != nil {
		t.Skip("a third process has taken the port: ", err)
	}
	connected := make(chan bool, 1)
	go func() {
		c, err := other.Accept()
		if err == nil {
			c.Close()
		}
		connected <- err == nil
	}()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "taken"), nil, 0o644))
	r := <-served
	other.Close()
	expect.True(t, !<-connected, "Serve connected to the other process")
	expect.MustTrue(t, r != nil, "Redis", r)
	expect.Fails(t, r.Err(), "cannot bind")
}

// A temporary Redis is a redis-server like that of Serve, whose directory is removed at its end.
func TestTemporary(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	r, at, err := atFree(Temporary)
	expect.NoError(t, err)
	expect.True(t, !r.Embedded, "the embedded Redis")
	expect.Equal(t, client(t, at).ConfigGet(t.Context(), "appendonly").Val()["appendonly"], "yes")
	expect.Result(Temporary(at)).FailsWith(t, ErrTaken)
	expect.Len(t, expect.Result(os.ReadDir(temporary)).Value(t), 1)
	r.Stop()
	t.Setenv("PATH", t.TempDir())
	r, _, err = atFree(Temporary)
	expect.NoError(t, err)
	expect.True(t, r.Embedded, "a redis-server")
	r.Stop()
	expect.Len(t, expect.Result(os.ReadDir(temporary)).Value(t), 0)
}

// A private Redis is a redis-server at a socket if a recent one is installed. It keeps nothing. What a killed process left
// behind is removed, and what a running one uses stays.
func TestPrivate(t *testing.T) {
	temporary := expect.Result(os.MkdirTemp("", "tdf-private-")).Value(t)
	t.Cleanup(func() { os.RemoveAll(temporary) })
	t.Setenv("TMPDIR", temporary)
	r, at, err := Private()
	expect.NoError(t, err)
	expect.Equal(t, at.Network(), "unix")
	c := redistest.Client(t, redis.Options{Network: "unix", Addr: at.Addr(), Password: at.Password})
	pid := serverPID(t, c)
	expect.Equal(t, c.ConfigGet(t.Context(), "appendonly").Val()["appendonly"], "no")
	stranger := redistest.Client(t, redis.Options{Network: "unix", Addr: at.Addr()})
	expect.Fails(t, stranger.Ping(t.Context()).Err(), "NOAUTH")

	left := filepath.Join(temporary, "tdf-redis-left")
	expect.NoError(t, os.Mkdir(left, 0o700))
	expect.NoError(t, os.WriteFile(filepath.Join(left, logFile), nil, 0o600))
	other, _, err := Private()
	expect.NoError(t, err)
	other.Stop()
	expect.NoError(t, c.Ping(t.Context()).Err())
	r.Stop()
	waitForEnd(t, pid)
	expect.Len(t, expect.Result(os.ReadDir(temporary)).Value(t), 0, "what is left")
}

// Without a recent redis-server that starts, or if the socket's name is too long, a private Redis is the embedded one.
func TestPrivateWithoutRedisServer(t *testing.T) {
	bin, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	isEmbedded := func(why string) {
		r, at, err := Private()
		expect.NoError(t, err, why)
		expect.Equal(t, at.Host, "127.0.0.1", why)
		expect.NoError(t, client(t, at).Ping(t.Context()).Err(), why)
		r.Stop()
		expect.Len(t, expect.Result(os.ReadDir(temporary)).Value(t), 0, why)
	}
	t.Setenv("PATH", bin)
	for why, script := range map[string]string{
		"none": "", "old": "#!/bin/sh\necho Redis server v=6.2.7 sha=0\n", "broken": "#!/bin/sh\nexit 1\n",
		"ends": "#!/bin/sh\n[ \"$1\" = - ] || echo Redis server v=8.0.1 sha=0\n",
	} {
		if script != "" {
			expect.NoError(t, os.WriteFile(filepath.Join(bin, "redis-server"), []byte(script), 0o700))
		}
		isEmbedded(why)
		_ = os.Remove(filepath.Join(bin, "redis-server"))
	}
	t.Setenv("PATH", "/usr/bin:/bin")
	temporary = filepath.Join(temporary, strings.Repeat("x", 100))
	expect.NoError(t, os.Mkdir(temporary, 0o700))
	t.Setenv("TMPDIR", temporary)
	isEmbedded("a long name")
}
