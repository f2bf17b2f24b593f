package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
)

// A Server serves /metrics to everyone who can reach its address.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen opens an address, such as ":9101", for the metrics of the administrator's namespace and of this process.
func Listen(ctx context.Context, address string, a *admin.Admin, log *slog.Logger) (*Server, error) {
	return listen(ctx, address, Process{Admins: []*admin.Admin{a}, Log: log}.Handler(), log)
}

func listen(ctx context.Context, address string, h http.Handler, log *slog.Logger) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", h)
	return &Server{listener, &http.Server{
		Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// Addr returns the address, with its port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves the metrics until Close.
func (s *Server) Run() { _ = s.http.Serve(s.listener) } // the only error is that the server was closed

// Close ends the server.
func (s *Server) Close() { _ = s.http.Close() }
