package redistest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A process is one run of redis-server.
type process struct {
	cmd  *exec.Cmd
	log  *os.File      // the file has already been removed from its directory, so it needs no cleanup
	done chan struct{} // closed when the process has ended
}

// launch starts redis-server, and waits until it accepts connections. The error contains the server's log.
func launch(s settings) (*process, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "redistest-*.log")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(log.Name()); err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, s.args...), log: log, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.dir, log, log
	p.cmd.Env = append(os.Environ(), s.env...)
	started := make(chan error)
	go p.supervise(started)
	if err := <-started; err != nil {
		log.Close()
		return nil, err
	}
	return p, p.awaitReady()
}

// supervise runs the process on a separate thread, and waits until it ends. The kernel kills the process when this
// thread ends. So the process also ends when the test process ends.
func (p *process) supervise(started chan<- error) {
	runtime.LockOSThread() // never unlocked, so that the thread ends with this function
	p.cmd.SysProcAttr = diesWithThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	stopWatch := watch(p.cmd.Process.Pid)
	p.cmd.Wait() // the error is ignored, because the server's log explains it
	stopWatch()
	close(p.done)
}

// awaitReady waits until the server's log says that the server, or sentinel, accepts connections. A test connection to
// the port would prove nothing, because it could reach another process.
func (p *process) awaitReady() error {
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		if log := p.readLog(); strings.Contains(log, "Ready to accept connections") || strings.Contains(log, "+monitor") {
			return nil
		}
		select {
		case <-poll.C:
		case <-p.done:
			defer p.log.Close()
			return fmt.Errorf("redis-server did not start: %s\n%s", p.cmd, p.readLog())
		}
	}
}

// readLog returns the server's present log. It does not change the file's offset, because the server uses the same
// offset.
func (p *process) readLog() string {
	text, err := io.ReadAll(io.NewSectionReader(p.log, 0, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kill kills the process with SIGKILL, and waits until it ends. It does nothing if the process has already ended.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill redis-server: %w", err)
	}
	<-p.done
	return nil
}

// oldest is the oldest major version of Redis that supports all features that the project uses.
const oldest = 7

var errMissing = errors.New("redis-server is not installed: apt-get install redis-server (make test does it)")

// binary returns the result of findBinary, which it calls only once.
var binary = sync.OnceValues(findBinary)

// findBinary returns the path of redis-server. It returns an error if redis-server is missing or too old.
func findBinary() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errMissing
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	return path, checkVersion(path, string(out))
}

var versionPattern = regexp.MustCompile(`\bv=(\d+)\.(\d+)`)

// checkVersion returns an error if redis-server is too old. It reads the output of redis-server --version, such as
// "Redis server v=7.0.15 sha=…".
func checkVersion(path, printed string) error {
	found := versionPattern.FindStringSubmatch(printed)
	if found == nil {
		return fmt.Errorf("redis-server %d.0 or later is needed: %s --version prints %q", oldest, path, printed)
	}
	if major, err := strconv.Atoi(found[1]); err != nil || major < oldest {
		return fmt.Errorf("redis-server %d.0 or later is needed, and %s is %s.%s; see https://redis.io/docs/install",
			oldest, path, found[1], found[2])
	}
	return nil
}

// This package uses the ports from firstPort to endPort. They are below the ports of outgoing connections, which begin
// at 32768 on Linux. So no connection can get the port of a stopped server. Each port plus 10000 is also a valid port,
// because a node of a Redis Cluster also uses that second port.
const firstPort, endPort = 20000, 30000

// listenFree listens on a free port of 127.0.0.1. Until the returned claim is closed, this package gives the port to no
// other server or proxy. So a stopped server or a refusing proxy can use its port again. The claim is the UDP port with
// the same number.
func listenFree() (listener net.Listener, claim io.Closer, err error) {
	for range 1000 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(endPort-firstPort)))
		claim, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			claim.Close()
			continue
		}
		return listener, claim, nil
	}
	return nil, nil, fmt.Errorf("no free port of 127.0.0.1 found between %d and %d", firstPort, endPort)
}

// FreeAddr returns an address of 127.0.0.1 with a free port, for a process that is not a Redis. This package gives the
// port to no server and no proxy before the test has ended.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, claim, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claim.Close() })
	return addr
}

// freePort returns an address of 127.0.0.1 with a free port, and the claim of this port.
func freePort() (addr string, claim io.Closer, err error) {
	listener, claim, err := listenFree()
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), claim, listener.Close()
}
