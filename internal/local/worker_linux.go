package local

import (
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/worker"
)

// removeAbandoned removes what a call that was killed has left. It does not wait long for processes that do not end.
func removeAbandoned(pattern string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	worker.RemoveAbandoned(ctx, pattern, log)
}

// newWorker makes a worker. If Config.Shared is false, the worker may kill orphans, which are processes that a program
// left behind (see worker.WithSole). This is safe, although the process has several workers and a redis-server:
//   - If there are no cgroups, an orphan with its own session and an empty environment may belong to any running
//     program. All workers of this process know all programs that run in it. So they kill the orphan only after the
//     last of these programs has ended.
//   - The redis-server starts before the first worker, and workers ignore processes that are older than themselves.
//   - While a worker fetches a program, no worker kills orphans, because an orphan may be a process of the fetch.
func (t *TDF) newWorker(name string) error {
	cfg := t.cfg.Worker
	cfg.Directory = t.Directory
	options := []worker.Option{
		worker.WithLog(t.cfg.Log.With("worker", name)), worker.WithVersion(t.cfg.Version),
		worker.WithArchives(archive.Compressions()...),
	}
	if !t.cfg.Shared {
		options = append(options, worker.WithSole())
	}
	if t.cfg.EndOnFullDisk {
		options = append(options, worker.WithEndOnFullDisk())
	}
	w, err := worker.New(name, cfg, options...)
	if err != nil {
		return err
	}
	t.workers = append(t.workers, w)
	return nil
}
