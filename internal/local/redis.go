package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// A Redis is one that runs as long as this process wants.
type Redis struct {
	stop  func()
	ended chan struct{} // closed when it has ended
	err   error         // why, where nobody told it to
}

// Errors of starting one.
var (
	ErrTaken     = errors.New("something listens there already")
	ErrInUse     = errors.New("another redis-server uses that directory")
	ErrSnapshot  = errors.New("there is a snapshot, dump.rdb, and no append-only file: it would not be loaded; start redis-server on it, have it write one (CONFIG SET appendonly yes), and end it")
	ErrNoProgram = errors.New("no redis-server is in PATH: install one (apt install redis-server, dnf install redis, brew install redis), or do without --data")
)

// Embedded starts the embedded Redis, which keeps nothing when it ends. The error may be [ErrTaken].
func Embedded(at config.Redis) (*Redis, error) {
	r, err := embedded.Start(at.Addr(), embedded.Password(at.Password))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrTaken
	}
	if err != nil {
		return nil, err
	}
	return &Redis{stop: r.Close, ended: make(chan struct{})}, nil
}

// Ended is closed when Redis has ended; then Err says why.
func (r *Redis) Ended() <-chan struct{} { return r.ended }

// Err is nil as long as Redis runs, and when it was told to stop.
func (r *Redis) Err() error {
	select {
	case <-r.ended:
		return r.err
	default:
		return nil
	}
}

// Stop ends it, and returns when it is gone.
func (r *Redis) Stop() { r.stop() }

// patience is how long a redis-server may take to write what it has and end.
const patience = 20 * time.Second

// Serve starts a redis-server that keeps its data in dir, in an append-only file, and logs to redis.log
// there. It ends with this process, however that ends, and gets none of the signals of its terminal. The
// error may be one of those above.
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
	defer lock.Close() // the server has it
	if err := mayServe(at, dir); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "redis.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-") // its configuration comes by stdin: arguments can be seen by all
	cmd.Stdin = strings.NewReader(serverConfig(at, dir))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, apart()
	cmd.ExtraFiles = []*os.File{lock}
	r, err := launch(cmd, log)
	if err != nil {
		return nil, err
	}
	r.awaitListening(at.Addr())
	return r, nil
}

// awaitListening returns when connections are accepted, or Redis has ended.
func (r *Redis) awaitListening(addr string) {
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-r.ended:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// lockDirectory sees to it that no two servers write the same file; the lock is held as long as one has it open.
func lockDirectory(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "tdf.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	lock.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrInUse
	}
	return nil, fmt.Errorf("locking %s: %w", dir, err)
}

func mayServe(at config.Redis, dir string) error {
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

// serverConfig leaves nothing to the defaults of a distribution that may cost tasks.
func serverConfig(at config.Redis, dir string) string {
	lines := [][]string{
		{"bind", at.Host},
		{"port", fmt.Sprint(at.Port)},
		{"protected-mode", "yes"},
		{"daemonize", "no"},
		{"supervised", "no"},
		{"dir", dir},
		{"databases", fmt.Sprint(max(16, at.DB+1))},
		{"appendonly", "yes"},
		{"appendfsync", "everysec"},
		{"save", ""},
		{"maxmemory-policy", "noeviction"},
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

// quote writes a value as redis-server reads it, whatever bytes are in it.
func quote(value string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(value) {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String() + `"`
}

func launch(cmd *exec.Cmd, log *os.File) (*Redis, error) {
	r := &Redis{ended: make(chan struct{})}
	told := make(chan struct{})
	began, _ := log.Seek(0, 2)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel ends the child with this thread, which ends with the child
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the workers may have waited for it already, as they do for any child that ended
		select {
		case <-told:
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
	r.stop = func() {
		close(told)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-r.ended
		}
	}
	return r, nil
}

// lastLines returns the end of what was logged since then.
func lastLines(log *os.File, began int64) string {
	const most = 1000
	text := make([]byte, most)
	end, _ := log.Seek(0, 2)
	n, _ := log.ReadAt(text, max(began, end-most))
	lines := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}
