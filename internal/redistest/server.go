package redistest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A Server is a redis-server on 127.0.0.1. Its methods may be called in turn only, from
// the goroutine of its test.
type Server struct {
	Addr string // host:port, the same over all restarts

	t       testing.TB
	claim   io.Closer // to the port
	dir     string
	args    []string
	process *process
}

// An Option says how a server is started.
type Option func(args []string) []string

// Args adds command line arguments: Args("--maxmemory", "2mb"),
// Args("--user", "default", "on", "nopass", "~*", "+@all").
func Args(args ...string) Option {
	return func(all []string) []string { return append(all, args...) }
}

// AOF keeps data in an append-only file, synced to disk as fsync says: "always",
// "everysec" or "no".
func AOF(fsync string) Option { return Args("--appendonly", "yes", "--appendfsync", fsync) }

// Start starts a server that keeps nothing on disk, on a free port, in a new temporary
// directory. It ends with the test, or with the test process if that comes first.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := start(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	s.t = t
	t.Cleanup(func() {
		s.Kill()
		s.claim.Close()
	})
	return s
}

// start tries again on another port as long as someone else is quicker to listen there.
func start(dir string, opts []Option) (*Server, error) {
	for {
		addr, claim, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &Server{Addr: addr, claim: claim, dir: dir, args: arguments(addr, opts)}
		s.process, err = launch(dir, s.args)
		if err == nil {
			return s, nil
		}
		claim.Close()
		if !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
}

func arguments(addr string, opts []Option) []string {
	host, port, _ := net.SplitHostPort(addr)
	args := []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"}
	for _, add := range opts {
		args = add(args)
	}
	return slices.Clip(args)
}

// Kill ends the server as kill -9 does. A server that has ended is left alone.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server as SIGTERM does: it syncs an append-only file first.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Restart starts the server again on its port, with what it had on disk. One that runs is
// killed first.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	process, err := launch(s.dir, s.args)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = process
}

// RestartEmpty is Restart after the loss of all that the server had on disk.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.Kill()
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			s.t.Fatal(err)
		}
	}
	s.Restart()
}

// Log returns what the server logged since it was last started.
func (s *Server) Log() string { return s.process.logged() }

func (s *Server) end(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.signal(sig); err != nil {
		s.t.Fatal(err)
	}
}
