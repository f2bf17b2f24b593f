package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/manager"
)

func ExampleNew() {
	var m *manager.Manager
	_ = func(ctx context.Context) error { return serveAPI(ctx, m) }
}

func serveAPI(ctx context.Context, m *manager.Manager) error {
	s := &http.Server{
		Addr:              "127.0.0.1:7379",
		Handler:           web.New(m, web.Options{Log: slog.Default()}),
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	context.AfterFunc(ctx, func() { s.Close() })
	return s.ListenAndServe()
}
