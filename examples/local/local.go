// Package local runs all of TDF in one process: an embedded Redis, a server, and workers in a
// temporary directory. Nothing has to be installed for it, and nothing of it stays. It is for
// trying things out; in earnest, server and workers are processes of their own.
package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/server"
	"github.com/tdf-framework/tdf/worker"
)

// A TDF is one in this process.
type TDF struct {
	redis *embedded.Redis // nil: there is another one
	at    config.Redis
	name  string // the namespace
	dir   string
	log   *slog.Logger
	stop  context.CancelFunc
	ended sync.WaitGroup
	store *redisstate.Store // of the server
}

// Start starts an embedded Redis, a server and so many workers, which share a working
// directory. Their warnings and errors are logged to w.
func Start(ctx context.Context, workers int, w io.Writer) (*TDF, error) {
	password := rand.Text()
	redis, err := embedded.Start("127.0.0.1:0", embedded.Password(password))
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(redis.Addr())
	if err != nil {
		return nil, err
	}
	at := config.Redis{Host: host, Password: password}
	if at.Port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	return start(ctx, &TDF{redis: redis, at: at, name: "local"}, workers, w)
}

// StartOn is Start without the Redis: it uses the one given, and a namespace there.
func StartOn(ctx context.Context, at config.Redis, namespace string, workers int, w io.Writer) (*TDF, error) {
	return start(ctx, &TDF{at: at, name: namespace}, workers, w)
}

func start(ctx context.Context, l *TDF, workers int, w io.Writer) (*TDF, error) {
	l.log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, l.stop = context.WithCancel(ctx)
	if err := l.start(ctx, workers); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

func (l *TDF) start(ctx context.Context, workers int) (err error) {
	if l.dir, err = os.MkdirTemp("", "tdf-*"); err != nil {
		return err
	}
	if err := l.startServer(ctx); err != nil {
		return err
	}
	for i := range workers {
		if err := l.startWorker(ctx, fmt.Sprintf("worker-%d", i+1)); err != nil {
			return err
		}
	}
	return nil
}

func (l *TDF) startServer(ctx context.Context) error {
	cfg, err := config.DefaultServer(l.name)
	if err != nil {
		return err
	}
	if l.store, err = redisstate.Connect(ctx, l.at, l.name, l.log); err != nil {
		return err
	}
	l.run(ctx, "server", server.New("server", cfg, l.store, l.log).Run)
	return nil
}

func (l *TDF) startWorker(ctx context.Context, name string) error {
	cfg, err := config.DefaultWorker(l.name)
	if err != nil {
		return err
	}
	cfg.Directory = l.dir
	cfg.SleepAfterFailure = 0
	cfg.Redis = l.at
	w, err := worker.New(name, cfg, worker.WithLog(l.log))
	if err != nil {
		return err
	}
	l.run(ctx, name, w.Run)
	return nil
}

func (l *TDF) run(ctx context.Context, name string, run func(context.Context) error) {
	l.ended.Go(func() {
		if err := run(ctx); err != nil {
			l.log.Error("it ended", "component", name, "error", err)
		}
	})
}

// Manager returns the configuration of a manager for this TDF.
func (l *TDF) Manager() (config.Manager, error) {
	cfg, err := config.DefaultManager(l.name)
	cfg.Redis = l.at
	return cfg, err
}

// Stop ends everything and removes what it left.
func (l *TDF) Stop() error {
	l.stop()
	l.ended.Wait()
	if l.store != nil {
		l.store.Close()
	}
	if l.redis != nil {
		l.redis.Close()
	}
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}
