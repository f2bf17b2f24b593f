package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/userfile"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/manager"
)

// Bounds of connections. A client that sends a byte from time to time holds a connection only for these times.
const (
	headerTime = 10 * time.Second // for the TLS handshake, and for the header of a call
	idleTime   = 2 * time.Minute  // between two calls
	pingTime   = 30 * time.Second // after which a silent HTTP/2 connection must answer a ping
	answerTime = 15 * time.Second // for the answer to a ping
	maxHeader  = 16 << 10         // bytes
	maxStreams = 250              // calls of one HTTP/2 connection at the same time

	mostConnections = 25_000          // idle ones cost about 20 KB each, and 20,000 workers may wait
	usualCallTime   = 5 * time.Second // for a call; one for many tasks may take ten times as long
)

var callTime = usualCallTime // longer in tests

// drainTime is how long calls may go on after the signal to stop.
const drainTime = 10 * time.Second

// A Server serves the API. Its address is open, but it accepts no calls before Run.
type Server struct {
	URL string // such as https://127.0.0.1:7379

	listener net.Listener
	server   *http.Server
	announce func(ctx context.Context)
}

// Managers returns a manager for each namespace of a configuration, with a name for the logs of tasks. The function
// closes them.
func Managers(tool config.Tool, name string, log *slog.Logger) (all []*manager.Manager, closeAll func(), err error) {
	closeAll = func() {
		for _, m := range all {
			_ = m.Close() // it has nothing left to lose
		}
	}
	names := tool.Namespaces
	if len(names) == 0 {
		names = []string{tool.Manager.Namespace}
	}
	for _, namespace := range names {
		o := manager.OptionsOf(tool.Manager)
		o.Namespace, o.Name, o.Log = namespace, name, log
		m, err := manager.New(o)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all = append(all, m)
	}
	return all, closeAll, nil
}

// Open opens the address of cfg.Listen for the API of the first manager's namespace, and for the dashboard, which shows
// the namespaces of all managers as one. The caller must call Run or Close. Open
// refuses an address that other machines can reach if no client could log in, because then the configuration is not
// finished. The error is a *[config.Error] without a Source if the configuration is wrong.
func Open(ctx context.Context, cfg config.HTTP, all []*manager.Manager, log *slog.Logger) (*Server, error) {
	m := all[0]
	security, err := tlsOf(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Users != "" {
		if _, err := userfile.Read(cfg.Users); err != nil {
			return nil, &config.Error{Section: "http", Key: "users", Problem: err.Error(), Err: err}
		}
	}
	if err := checkLogins(ctx, cfg, m); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL:      "http://" + listener.Addr().String(),
		listener: &sharing{listener, pool.New(mostConnections)},
	}
	if security != nil {
		s.URL = "https://" + listener.Addr().String()
	}
	dir, err := blobs(cfg, m)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.announce = func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { announce(ctx, admin.New(m), cfg, s.URL) })
		if dir != nil {
			both.Go(func() { keepBlobs(ctx, dir, managing.Of(m).Store, log) })
		}
		both.Wait()
	}
	s.server = &http.Server{
		Handler: web.New(m, web.Options{
			Hosts: cfg.Hosts, Proxies: cfg.Proxies, Memory: callMemory(debug.SetMemoryLimit(-1), resources.Here().Memory),
			Timeout: callTime, Log: log, Version: command.Version(), Interfaces: interfaces(cfg, m, log),
			Users: cfg.Users, Public: cfg.Public, Shards: all[1:], Blobs: dir, CertificateEnds: endOf(security),
		}),
		TLSConfig:         security,
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, SendPingTimeout: pingTime,
			PingTimeout: answerTime, WriteByteTimeout: time.Minute,
		},
		// such as connections that break off; clients cause these lines
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// mostMemory is the largest number of bytes for calls without GOMEMLIMIT.
const mostMemory = 1 << 30

// callMemory returns how many bytes all calls may hold together: half of the limit of Go (GOMEMLIMIT), because
// garbage needs the other half, or without a limit, a quarter of the machine's memory, but at most 1 GiB. It returns
// 0 for the default.
func callMemory(limit, machine int64) int64 {
	if limit < math.MaxInt64 {
		return max(limit/2, 1)
	}
	return min(machine/4, mostMemory)
}

// checkLogins returns an error if other machines can reach the API, and none of them could log in.
func checkLogins(ctx context.Context, cfg config.HTTP, m *manager.Manager) error {
	if cfg.OnLoopback() || cfg.ClientCA != "" || cfg.Users != "" {
		return nil
	}
	tokens, err := admin.New(m).Tokens(ctx)
	if err != nil || len(tokens) > 0 {
		return err
	}
	return &config.Error{
		Section: "http", Key: "listen",
		Problem: fmt.Sprintf("%s is not a loopback address, and the namespace has no token; add one with tdf token "+
			"add, or set client_ca", cfg.Listen),
	}
}

func listen(ctx context.Context, cfg config.HTTP) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("serve the HTTP API: %w; choose another address with [http] listen", err)
	}
	if err != nil {
		return nil, fmt.Errorf("serve the HTTP API: %w", err)
	}
	at, err := netip.ParseAddrPort(listener.Addr().String())
	// the name localhost may have another address on this machine
	if cfg.OnLoopback() && (err != nil || !at.Addr().IsLoopback()) {
		return nil, errors.Join(&config.Error{Section: "http", Key: "listen", Problem: listener.Addr().String() +
			" is not a loopback address"}, listener.Close())
	}
	return listener, nil
}

// Close closes the address of a Server that will not run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves calls until ctx ends. Calls that are under way may then go on for 10 s.
func (s *Server) Run(ctx context.Context) error {
	announcing, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.announce(announcing)
	}()
	defer func() {
		end()
		<-ended
	}()
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		_ = s.server.Shutdown(bound) // fails if a call takes longer
		stopped <- s.server.Close()
	})
	err := s.serve()
	if stop() { // serve has failed by itself
		return fmt.Errorf("serve the HTTP API: %w", err)
	}
	return <-stopped
}

func (s *Server) serve() error {
	if s.server.TLSConfig == nil {
		return s.server.Serve(s.listener)
	}
	return s.server.ServeTLS(s.listener, "", "")
}
