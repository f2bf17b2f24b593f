package local

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/embedded"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Redis is a running Redis: the embedded Redis or a redis-server.
type Redis struct {
	Embedded bool

	stop  func()
	ended chan struct{} // closed when Redis has ended
	err   error         // cause of the end; nil if Stop was called
}

// Errors of [Temporary] and [Serve].
var (
	ErrTaken    = task.NewError(task.CodeTaken, "the address is in use")
	ErrInUse    = task.NewError(task.CodeTaken, "another redis-server uses the directory")
	ErrSnapshot = task.NewError(task.CodeConflict, "the directory contains a snapshot (dump.rdb) but no append-only "+
		"file, and redis-server would ignore the snapshot; start a redis-server in the directory, run CONFIG SET "+
		"appendonly yes, and stop it")
	ErrNoProgram = task.NewError(task.CodeNotFound, "no redis-server in PATH; install it (apt install redis-server, "+
		"dnf install redis, brew install redis), or leave out --data")
)

// Temporary starts a Redis whose data are lost when it ends. It is a redis-server with a directory of its own if a
// recent one is installed (docs/decisions/embedded-redis.md), and otherwise the embedded Redis. The error may be
// [ErrTaken].
func Temporary(at config.Redis) (*Redis, error) {
	serve := func(_, dir string) (*Redis, error) { return Serve(at, dir) }
	if r, err := inOwnDirectory(serve); r != nil || errors.Is(err, ErrTaken) {
		return r, err
	}
	return startEmbedded(at)
}

func startEmbedded(at config.Redis) (*Redis, error) {
	r, err := embedded.Start(at.Addr(), embedded.Password(at.Password))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrTaken
	}
	if err != nil {
		return nil, err
	}
	return ofEmbedded(r), nil
}

func ofEmbedded(r *embedded.Redis) *Redis {
	ended := make(chan struct{})
	return &Redis{Embedded: true, ended: ended, stop: sync.OnceFunc(func() {
		r.Close()
		close(ended)
	})}
}

// Private starts a Redis for this process alone, which loses its data at its end, and returns its address. It is a
// redis-server if a recent one is installed, because the embedded Redis needs several times its CPU time. It listens at
// a socket, and ends with this process, even if this process is killed.
func Private() (*Redis, config.Redis, error) {
	at := config.Redis{Password: rand.Text()}
	onSocket := at
	serve := func(path, dir string) (*Redis, error) { return servePrivately(path, dir, &onSocket) }
	if r, _ := inOwnDirectory(serve); r != nil {
		return r, onSocket, nil
	}
	r, err := embedded.Start("127.0.0.1:0", embedded.Password(at.Password))
	if err != nil {
		return nil, at, fmt.Errorf("start the embedded Redis: %w", err)
	}
	host, port, _ := net.SplitHostPort(r.Addr())
	at.Host = host
	at.Port, err = strconv.Atoi(port)
	return ofEmbedded(r), at, err
}

// inOwnDirectory starts a redis-server in a new directory, which is removed when the redis-server has been stopped. It
// returns nil if it cannot.
func inOwnDirectory(start func(path, dir string) (*Redis, error)) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil || !isRecent(path) {
		return nil, err
	}
	removeEnded()
	dir, err := os.MkdirTemp("", private)
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	r, err := start(path, dir)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		remove()
		return nil, err
	}
	stop := r.stop
	r.stop = sync.OnceFunc(func() {
		stop()
		remove()
	})
	return r, nil
}

// servePrivately starts a redis-server that stores nothing, and sets its socket.
func servePrivately(path, dir string, at *config.Redis) (*Redis, error) {
	at.Host = filepath.Join(dir, "redis.sock")
	if len(at.Host) > maxSocket {
		return nil, syscall.ENAMETOOLONG
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the redis-server has inherited the file, and keeps the lock
	return startServer(path, *at, dir, false, lock)
}

// private is the pattern of the names of the directories of private Redises.
const private = "tdf-redis-*"

// removeEnded removes directories of private Redises that have ended with a killed process. A directory without a
// log is one that another process is about to use.
func removeEnded() {
	logs, _ := filepath.Glob(filepath.Join(os.TempDir(), private, logFile))
	for _, log := range logs {
		if lock, err := lockDirectory(filepath.Dir(log)); err == nil {
			_ = os.RemoveAll(filepath.Dir(log))
			lock.Close()
		}
	}
}

const logFile = "redis.log"

// maxSocket bounds the length of the path of a socket in bytes. Linux allows 107, and macOS 103.
const maxSocket = 100

// isRecent reports whether a redis-server, or its replacement by Valkey, has at least version 7.
func isRecent(path string) bool {
	text, err := exec.Command(path, "--version").Output()
	_, number, _ := strings.Cut(string(text), " v=") // as in "Redis server v=7.0.15 sha=00000000:0"
	number, _, _ = strings.Cut(number, ".")
	major, _ := strconv.Atoi(number)
	return err == nil && major >= 7
}

// Ended returns a channel that is closed when Redis has ended. After that, Err returns the cause.
func (r *Redis) Ended() <-chan struct{} { return r.ended }

// Err returns the error with which Redis ended. It returns nil while Redis runs, and after Stop.
func (r *Redis) Err() error {
	select {
	case <-r.ended:
		return r.err
	default:
		return nil
	}
}

// Stop stops Redis, and returns when it has ended. It may be called several times.
func (r *Redis) Stop() { r.stop() }

// stopTimeout is the time in which a redis-server must write its data and end.
const stopTimeout = 20 * time.Second

// Serve starts a redis-server with an append-only file in dir. Its log is redis.log in dir. The redis-server ends with
// this process, even if this process is killed. It gets no signals from the terminal. The error may be
// [ErrTaken], [ErrInUse], [ErrSnapshot] or [ErrNoProgram].
func Serve(at config.Redis, dir string) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoProgram
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the redis-server has inherited the file, and keeps the lock
	if err := checkBefore(at, dir); err != nil {
		return nil, err
	}
	return startServer(path, at, dir, true, lock)
}

// startServer starts a redis-server, which inherits the files. If it keeps its data, it has an append-only file.
func startServer(path string, at config.Redis, dir string, keeps bool, inherited ...*os.File) (*Redis, error) {
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-") // pass the configuration on stdin, because other users can see arguments
	cmd.Stdin = strings.NewReader(serverConfig(at, dir, keeps))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, ownProcessGroup()
	cmd.ExtraFiles = inherited
	began, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		log.Close()
		return nil, err
	}
	r, err := launch(cmd, log, began)
	if err != nil {
		return nil, err
	}
	r.await(func() bool { return listens(at, log, began) })
	return r, nil
}

// listens reports whether Redis accepts connections. For a port, it asks the log, since a process of another user may
// have taken the port before Redis did, and would get the password. A socket is in a directory of this user alone, so
// listens asks Redis: a full disk keeps the log empty.
func listens(at config.Redis, log io.ReaderAt, began int64) bool {
	if at.Network() == "unix" {
		c, err := net.Dial("unix", at.Addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	text, _ := io.ReadAll(io.NewSectionReader(log, began, 1<<20)) // an error means that Redis has ended
	return bytes.Contains(text, []byte("Ready to accept connections"))
}

// await returns when Redis accepts connections or has ended.
func (r *Redis) await(listens func() bool) {
	for !listens() {
		select {
		case <-r.ended:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// lockDirectory locks dir, so that no two redis-servers write the same file. The lock holds while the file is open.
func lockDirectory(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "tdf.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		lock.Close()
		return nil, ErrInUse
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return lock, nil
}

// checkBefore returns an error for problems that redis-server itself would not report clearly.
func checkBefore(at config.Redis, dir string) error {
	_, noFile := os.Stat(filepath.Join(dir, "appendonlydir"))
	if _, err := os.Stat(filepath.Join(dir, "dump.rdb")); err == nil && noFile != nil {
		return ErrSnapshot
	}
	l, err := net.Listen("tcp", at.Addr())
	if errors.Is(err, syscall.EADDRINUSE) {
		return ErrTaken
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// serverConfig returns the configuration of a redis-server. It sets every key whose default in a Linux distribution
// could lose tasks, and the keys that docs/operations.md recommends.
func serverConfig(at config.Redis, dir string, keeps bool) string {
	lines := [][]string{{"bind", at.Host}, {"port", fmt.Sprint(at.Port)}, {"appendonly", "yes"}}
	if !keeps {
		lines = [][]string{{"port", "0"}, {"unixsocket", at.Host}, {"unixsocketperm", "700"}, {"appendonly", "no"}}
	}
	lines = append(lines, [][]string{
		{"protected-mode", "yes"},
		{"daemonize", "no"},
		{"supervised", "no"},
		{"loglevel", "notice"},
		{"dir", dir},
		{"databases", fmt.Sprint(max(16, at.DB+1))},
		{"appendfsync", "everysec"},
		{"save", ""},
		{"maxmemory-policy", "noeviction"},
	}...)
	for _, t := range conn.Tunings() {
		lines = append(lines, []string{t.Name, fmt.Sprint(t.Value)})
	}
	if at.Password != "" {
		lines = append(lines, []string{"requirepass", at.Password})
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %s\n", l[0], quote(l[1]))
	}
	return b.String()
}

// quote quotes any bytes for redis-server's configuration.
func quote(value string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(value) {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String() + `"`
}

func launch(cmd *exec.Cmd, log *os.File, began int64) (*Redis, error) {
	r := &Redis{ended: make(chan struct{})}
	stopping := make(chan struct{})
	started := make(chan error)
	go func() {
		// The kernel kills the child when this thread ends, so the thread must wait for the end of the child.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // fails if a worker has already waited for this child
		select {
		case <-stopping:
		default:
			r.err = fmt.Errorf("redis-server has ended: %s", lastLines(log, began))
		}
		log.Close()
		close(r.ended)
	}()
	if err := <-started; err != nil {
		log.Close()
		return nil, err
	}
	r.stop = sync.OnceFunc(func() {
		close(stopping)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-time.After(stopTimeout):
			_ = cmd.Process.Kill()
			<-r.ended
		}
	})
	return r, nil
}

// lastLines returns the last three lines that the log contains after the given offset.
func lastLines(log *os.File, began int64) string {
	const limit = 1000 // bytes
	text := make([]byte, limit)
	end, _ := log.Seek(0, 2)
	n, _ := log.ReadAt(text, max(began, end-limit))
	lines := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}
