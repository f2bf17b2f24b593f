package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
	"github.com/tdf-framework/tdf/worker"
)

// A Config says what to run. Server and Worker name the Redis to use.
type Config struct {
	Server config.Server
	Worker config.Worker // without a Directory, a temporary one is made, and removed at the end

	Name    string   // of the server
	Workers []string // their names
	Version string   // of the release
	Log     *slog.Logger
}

// A TDF is a server and workers that run in this process.
type TDF struct {
	Directory string // where the workers' programs are

	cfg       Config
	temporary bool              // Directory goes when this ends
	store     *redisstate.Store // of the server
	workers   []*worker.Worker

	working, serving         sync.WaitGroup
	stopWorking, stopServing context.CancelFunc
	failed                   chan error
}

// Start starts a server and workers; ctx bounds the wait for Redis only.
func Start(ctx context.Context, cfg Config) (*TDF, error) {
	t := &TDF{cfg: cfg, Directory: cfg.Worker.Directory, failed: make(chan error, 1)}
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.Stop())
	}
	return t, nil
}

func (t *TDF) start(ctx context.Context) error {
	var working, serving context.Context
	working, t.stopWorking = context.WithCancel(context.WithoutCancel(ctx))
	serving, t.stopServing = context.WithCancel(context.WithoutCancel(ctx))
	if err := t.makeDirectory(); err != nil {
		return err
	}
	store, err := redisstate.Connect(ctx, t.cfg.Worker.Redis, t.cfg.Worker.Namespace, t.cfg.Log)
	if err != nil {
		return err
	}
	t.store = store
	for _, name := range t.cfg.Workers { // all of them before any runs: an error of one is an error of all
		if err := t.newWorker(name); err != nil {
			return err
		}
	}
	t.run(&t.serving, serving, "server", server.New(t.cfg.Name, t.cfg.Server, store, t.cfg.Log).Run)
	for i, w := range t.workers {
		t.run(&t.working, working, "worker "+t.cfg.Workers[i], w.Run)
	}
	return nil
}

func (t *TDF) makeDirectory() (err error) {
	if t.Directory != "" {
		return os.MkdirAll(t.Directory, 0o755)
	}
	t.Directory, err = os.MkdirTemp("", "tdf-*")
	t.temporary = err == nil
	return err
}

// newWorker makes a worker that has the process for itself (worker.WithSole) as far as orphans go, though there
// are several, and a redis-server. Where there are no cgroups, nothing tells whose an orphan is that has cleared its
// environment and begun a session of its own. Then all programs that run here are suspects, whichever worker's they
// are, since the workers share what they know of this process's children: it is ended with the last of them, so
// that no program loses one of its own to another's end. Without Sole it would outlive all of this. The
// redis-server is no suspect's: it is there before the first worker, and what is there then is left alone. (Only while a
// worker fetches a program, which it tells all of them, an orphan may be a fetcher's, and is left alone, too.)
func (t *TDF) newWorker(name string) error {
	cfg := t.cfg.Worker
	cfg.Directory = t.Directory
	w, err := worker.New(name, cfg, worker.WithLog(t.cfg.Log.With("worker", name)), worker.WithVersion(t.cfg.Version), worker.WithSole())
	if err != nil {
		return err
	}
	t.workers = append(t.workers, w)
	return nil
}

func (t *TDF) run(all *sync.WaitGroup, ctx context.Context, what string, run func(context.Context) error) {
	all.Go(func() {
		if err := run(ctx); err != nil {
			select {
			case t.failed <- fmt.Errorf("%s: %w", what, err):
			default: // one reason is enough
			}
		}
	})
}

// Failed has the reason when a part has ended by itself.
func (t *TDF) Failed() <-chan error { return t.failed }

// Stop ends the workers, which lets their programs finish for the grace of the configuration, and then the
// server.
func (t *TDF) Stop() error {
	t.stopWorking()
	t.working.Wait()
	t.stopServing()
	t.serving.Wait()
	if t.store != nil {
		t.store.Close()
	}
	if !t.temporary {
		return nil
	}
	return os.RemoveAll(t.Directory)
}

// StopNow cuts the grace of a Stop short: programs are killed, and their tasks released.
func (t *TDF) StopNow() {
	for _, w := range t.workers {
		w.StopNow()
	}
}
