package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/notify"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Config is the configuration of a TDF. The server and the workers use the Redis and the namespace of the field
// Worker. Start ignores the Redis and the namespace of the field Server.
type Config struct {
	Server config.Server
	Notify config.Notify
	Worker config.Worker // if Directory is "", Start makes a temporary directory, and Stop removes it

	Name    string   // the server's name
	Workers []string // the workers' names
	Version string   // version of the release
	// a worker that cannot start a round because the disk is full ends with an error ([TDF.Failed])
	EndOnFullDisk bool
	// this process has other children, which workers must not mistake for processes that a program left behind
	Shared bool
	Log    *slog.Logger
}

// A TDF is a server and workers that run in this process.
type TDF struct {
	Directory string      // the workers' working directory
	Keep      atomic.Bool // Stop removes no Directory, because the user needs files in it

	cfg       Config
	temporary bool              // Stop removes Directory
	store     *redisstate.Store // connection of the server to Redis
	workers   []runner

	working, serving         sync.WaitGroup
	stopWorking, stopServing context.CancelFunc
	failed                   chan error
}

// A runner is a worker, or a stand-in for it where workers do not run.
type runner interface {
	Run(ctx context.Context) error
	StopNow()
}

// Start starts a server and workers. ctx limits only the wait for Redis.
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
	store.Counters.KeepCounts()
	t.store = store
	// All workers are made before the first worker runs, so that no worker runs if one of them cannot be made.
	for _, name := range t.cfg.Workers {
		if err := t.newWorker(name); err != nil {
			return err
		}
	}
	notifier, err := notify.New(t.cfg.Notify, t.cfg.Server.Namespace, store, t.cfg.Log)
	if err != nil {
		return err
	}
	t.run(&t.serving, serving, "notices", notifier.Run)
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
	name := "tdf-"
	host, _ := os.Hostname() // if TMPDIR is shared, no other machine sees the locks of this one
	if host != "" {
		name += host + "-"
		removeAbandoned(filepath.Join(os.TempDir(), name+"*"), t.cfg.Log)
	}
	t.Directory, err = os.MkdirTemp("", name+"*")
	t.temporary = err == nil
	if dir := os.Getenv("TMPDIR"); err != nil && dir != "" {
		err = fmt.Errorf("the environment variable TMPDIR is %s: %w", dir, err)
	}
	return err
}

func (t *TDF) run(all *sync.WaitGroup, ctx context.Context, component string, run func(context.Context) error) {
	all.Go(func() {
		if err := run(ctx); err != nil {
			select {
			case t.failed <- fmt.Errorf("%s: %w", component, err):
			default: // report only the first error
			}
		}
	})
}

// Failed returns a channel with the error of the first component that failed.
func (t *TDF) Failed() <-chan error { return t.failed }

// Stop stops the workers and then the server. Running programs may finish within the time of [worker] grace.
func (t *TDF) Stop() error {
	t.stopWorking()
	t.working.Wait()
	t.stopServing()
	t.serving.Wait()
	if t.store != nil {
		t.store.Close()
	}
	if !t.temporary || t.Keep.Load() {
		return nil
	}
	return os.RemoveAll(t.Directory)
}

// StopNow makes the workers kill their programs and release the tasks, so that Stop does not wait for the programs.
func (t *TDF) StopNow() {
	for _, w := range t.workers {
		w.StopNow()
	}
}
