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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
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
	if err != nil {
		t.Fatal(err)
	}
	at.Password = password
	return r, at
}

// embeddedRedis starts an embedded Redis that ends with the test.
func embeddedRedis(t *testing.T) config.Redis {
	t.Helper()
	r, at, err := atFree(Embedded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return at
}

func client(t *testing.T, at config.Redis) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: at.Addr(), Password: at.Password, Protocol: 2})
	t.Cleanup(func() { c.Close() })
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
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"appendonly": "yes", "save": "", "maxmemory-policy": "noeviction", "bind": "127.0.0.1", "hash-max-listpack-value": "1024"} {
		if got := c.ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if args, err := os.ReadFile("/proc/" + strconv.Itoa(serverPID(t, c)) + "/cmdline"); err != nil || strings.Contains(string(args), "p \"") {
		t.Errorf("redis-server's arguments are %q, %v", args, err)
	}
	r.Stop()
	if r.Err() != nil {
		t.Errorf("redis-server ended with %v", r.Err())
	}
	r, at = serve(t, dir, "")
	defer r.Stop()
	if got := client(t, at).Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("after a restart k is %q", got)
	}
}

// Serve gives a redis-server all settings that docs/operations.md and docs/tutorial.md recommend.
func TestServerConfigMatchesThePages(t *testing.T) {
	has := func(setting string) bool {
		name, value, _ := strings.Cut(setting, " ")
		return strings.Contains(serverConfig(config.Redis{}, ""), "\n"+name+" "+quote(value)+"\n")
	}
	settings := func(page, heading string, setting *regexp.Regexp) (found []string) {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, m := range setting.FindAllStringSubmatch(section, -1) {
			found = append(found, m[1])
		}
		return found
	}
	table := settings("operations.md", "\n## Redis\n", regexp.MustCompile("(?m)^\\| `([a-z-]+ [a-z0-9]+)` \\|"))
	file := settings("tutorial.md", "\n## Add a second machine\n", regexp.MustCompile(`(?m)^   ((?:append|hash|maxmemory)[a-z-]* \S+)$`))
	listpack := fmt.Sprintf("hash-max-listpack-value %d", redisstate.HashMaxListpackValue)
	for page, found := range map[string][]string{"operations.md": table, "tutorial.md": file} {
		if !slices.Contains(found, listpack) || !slices.Contains(found, "appendonly yes") {
			t.Errorf("%s recommends %q, without %q or without appendonly", page, found, listpack)
		}
		for _, setting := range found {
			if !has(setting) {
				t.Errorf("%s recommends %q, but serverConfig does not contain it", page, setting)
			}
		}
	}
}

func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	r, at := serve(t, dir, "")
	defer r.Stop()
	if _, err := Serve(at, t.TempDir()); !errors.Is(err, ErrTaken) {
		t.Errorf("a second redis-server on the port: %v", err)
	}
	if _, err := Embedded(at); !errors.Is(err, ErrTaken) {
		t.Errorf("an embedded Redis on the port: %v", err)
	}
	other, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(other, dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second redis-server in the directory: %v", err)
	}
	snapshot := t.TempDir()
	if err := os.WriteFile(filepath.Join(snapshot, "dump.rdb"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(other, snapshot); !errors.Is(err, ErrSnapshot) {
		t.Errorf("in a directory with a snapshot: %v", err)
	}
	t.Setenv("PATH", snapshot)
	if _, err := Serve(other, t.TempDir()); !errors.Is(err, ErrNoProgram) {
		t.Errorf("without a redis-server: %v", err)
	}
}

// If a redis-server ends without Stop, Err returns the cause.
func TestServeEnds(t *testing.T) {
	r, at := serve(t, t.TempDir(), "")
	client(t, at).Do(t.Context(), "shutdown", "nosave", "force")
	<-r.Ended()
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "redis-server has ended") || !strings.Contains(err.Error(), "User requested shutdown") {
		t.Errorf("redis-server ended with %v", err)
	}
	r.Stop()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "appendonlydir"), []byte("no directory"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, _ = serve(t, broken, "")
	<-r.Ended()
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "appendonlydir") {
		t.Errorf("redis-server ended with %v", err)
	}
}

// When its parent process is killed, the redis-server ends. A Ctrl-C on the terminal does not reach the redis-server.
func TestServeDiesWithItsParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), servesIn+"="+dir)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	pid := childOf(t, parent.Process.Pid)
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("redis-server's process group is %d, %v", group, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	waitForEnd(t, pid)
	eventually(t, "the directory's lock is free", func() bool { // redis-server releases the lock when its last thread ends
		at, err := freeAddr()
		if err != nil {
			t.Fatal(err)
		}
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
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path) // fails if the process has ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("process %d has no child", parent)
	return 0
}

// The channel of Ended is closed after Stop, also for the embedded Redis.
func TestEmbeddedRedisEnds(t *testing.T) {
	r, err := Embedded(config.Redis{Host: "127.0.0.1", Port: 0})
	if err != nil {
		t.Fatal(err)
	}
	r.Stop()
	select {
	case <-r.Ended():
	case <-time.After(time.Minute):
		t.Fatal("the embedded Redis has not ended")
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	r.Stop()
}

// Another process takes the port after Serve has checked it, and before redis-server listens. It gets no connection, and so
// no password.
func TestPortTakenBeforeRedisListens(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\ntouch started\nwhile ! [ -e taken ]; do sleep 0.01; done\nsleep 0.2\necho cannot bind >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	at, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	at.Password = "secret"
	served := make(chan *Redis)
	go func() {
		r, _ := Serve(at, dir)
		served <- r
	}()
	for _, err := os.Stat(filepath.Join(dir, "started")); err != nil; _, err = os.Stat(filepath.Join(dir, "started")) {
		time.Sleep(time.Millisecond)
	}
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
	if err := os.WriteFile(filepath.Join(dir, "taken"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := <-served
	other.Close()
	if <-connected {
		t.Error("Serve connected to the other process")
	}
	if r == nil || r.Err() == nil || !strings.Contains(r.Err().Error(), "cannot bind") {
		t.Errorf("Redis: %+v", r)
	}
}
