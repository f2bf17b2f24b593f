package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Server is a redis-server on 127.0.0.1. Only the test's goroutine may call its methods.
type Server struct {
	Addr string // host:port; a restart does not change it

	t     testing.TB
	claim io.Closer // keeps the port for this server
	settings
	process *process
}

// settings are how a server is started.
type settings struct {
	dir  string
	args []string
	env  []string // beside those of the test
}

// An Option changes how a server is started.
type Option func(*settings)

// Args adds command line arguments: Args("--maxmemory", "2mb"),
// Args("--user", "default", "on", "nopass", "~*", "+@all").
func Args(args ...string) Option {
	return func(s *settings) { s.args = append(s.args, args...) }
}

// TLS makes the server speak only TLS, with the certificate and key in these files.
func TLS(cert, key string) Option {
	return func(s *settings) {
		s.args[slices.Index(s.args, "--port")] = "--tls-port" // the same free port
		s.args = append(s.args, "--port", "0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	}
}

// Dir keeps the server's files in a directory, instead of a temporary one.
func Dir(dir string) Option { return func(s *settings) { s.dir = dir } }

// AOF keeps the data in an append-only file. The value of redis-server's setting appendfsync is fsync: "always",
// "everysec" or "no".
func AOF(fsync string) Option { return Args("--appendonly", "yes", "--appendfsync", fsync) }

// Start starts a server on a free port, in a temporary directory. Without [AOF], the server keeps no data on disk. It
// ends with the test.
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

// start starts a server. If another process already uses the port, start tries another port.
func start(dir string, opts []Option) (*Server, error) {
	for {
		addr, claim, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &Server{Addr: addr, claim: claim, settings: settingsOf(addr, dir, opts)}
		s.process, err = launch(s.settings)
		if err == nil {
			return s, nil
		}
		claim.Close()
		if !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
}

func settingsOf(addr, dir string, opts []Option) settings {
	host, port, _ := net.SplitHostPort(addr)
	s := settings{dir: dir, args: []string{
		"--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--databases",
		strconv.Itoa(databases),
	}}
	for _, set := range opts {
		set(&s)
	}
	s.args = slices.Clip(s.args)
	return s
}

// Kill kills the server with SIGKILL. It does nothing if the server has already ended.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.process.kill(); err != nil {
		s.t.Fatal(err)
	}
}

// Signal sends a signal to the server, such as SIGSTOP.
func (s *Server) Signal(signal os.Signal) {
	s.t.Helper()
	if err := s.process.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
}

// Ended reports whether the server has ended by itself, or was killed.
func (s *Server) Ended() bool {
	select {
	case <-s.process.done:
		return true
	default:
		return false
	}
}

// Restart kills the server if it runs, and starts it again with the same port and files.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	process, err := launch(s.settings)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = process
}
