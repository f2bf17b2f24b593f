// Package trial runs all of TDF in this process, for examples and for trying things out: an embedded Redis, a server
// and workers. It keeps nothing after its end.
package trial

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/local"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// A Trial is a server and workers with the default settings, for examples and tests.
type Trial struct {
	tdf       *local.TDF
	redis     *embedded.Redis // nil if the caller runs the Redis
	at        tdf.Redis
	namespace string
	stopped   chan struct{}
}

// Start starts an embedded Redis, a server and workers. It logs warnings and errors to w. Call Stop at the end.
func Start(ctx context.Context, workers int, w io.Writer) (*Trial, error) {
	password := rand.Text()
	redis, err := embedded.Start("127.0.0.1:0", embedded.Password(password))
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(redis.Addr())
	at := tdf.Redis{Host: host, Password: password}
	at.Port, _ = strconv.Atoi(port)
	t, err := StartOn(ctx, at, "trial", workers, w)
	if err != nil {
		redis.Close()
		return nil, err
	}
	t.redis = redis
	return t, nil
}

// StartOn does the same as Start, but with the caller's Redis and namespace.
func StartOn(ctx context.Context, at tdf.Redis, namespace string, workers int, w io.Writer) (*Trial, error) {
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := config.DefaultServer(namespace)
	if err != nil {
		return nil, err
	}
	worker, err := config.DefaultWorker(namespace)
	if err != nil {
		return nil, err
	}
	server.Redis, worker.Redis = at, at
	worker.Directory, worker.SleepAfterFailure = "", 0
	cfg := local.Config{Server: server, Worker: worker, Name: "server", Shared: true, Log: log}
	for i := range workers {
		cfg.Workers = append(cfg.Workers, fmt.Sprintf("worker-%d", i+1))
	}
	all, err := local.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t := &Trial{tdf: all, at: at, namespace: namespace, stopped: make(chan struct{})}
	go t.logFailure(log)
	return t, nil
}

// logFailure logs the error of a component that ends before Stop.
func (t *Trial) logFailure(log *slog.Logger) {
	select {
	case err := <-t.tdf.Failed():
		log.Error("component failed", "error", err)
	case <-t.stopped:
	}
}

// Manager returns the options of a manager for this trial.
func (t *Trial) Manager() manager.Options {
	return manager.Options{Redis: t.at, Namespace: t.namespace}
}

// Stop stops the workers, the server and the embedded Redis, and removes their files.
func (t *Trial) Stop() error {
	err := t.tdf.Stop()
	close(t.stopped)
	if t.redis != nil {
		t.redis.Close()
	}
	return err
}
