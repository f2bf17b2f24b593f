package apiserver

import (
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// sweepPause is the pause between two removals of blobs that Redis does not know any more.
const sweepPause = 10 * time.Minute

// blobs opens the directory of the blobs of a manager's namespace. It returns nil without one.
func blobs(cfg config.HTTP, m *manager.Manager) (*blob.Dir, error) {
	if cfg.Blobs == "" {
		return nil, nil
	}
	dir, err := blob.OpenDir(cfg.Blobs, managing.Of(m).Config.Namespace)
	if err != nil {
		return nil, &config.Error{Section: "http", Key: "blobs", Problem: err.Error(), Err: err}
	}
	return dir, nil
}

// keepBlobs stores in Redis where the blobs are, and removes those that are not used any more, until ctx ends.
func keepBlobs(ctx context.Context, dir *blob.Dir, store *redisstate.Store, log *slog.Logger) {
	for first := true; ctx.Err() == nil; first = false {
		err := announceBlobs(ctx, dir, store, log, first)
		if err == nil {
			err = dir.Sweep(ctx, store.Blobs.LostBlobs)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("blobs could not be removed", "directory", dir.Path, "error", err)
		}
		conn.Sleep(ctx, sweepPause)
	}
}

// announceBlobs stores where the blobs are. If another API has announced another directory, one of both must change:
// the API that has started last keeps its own announced, and both say so.
func announceBlobs(ctx context.Context, dir *blob.Dir, store *redisstate.Store, log *slog.Logger, first bool) error {
	id, path, err := store.Blobs.BlobPlace(ctx)
	if err != nil {
		return err
	}
	another := id != "" && id != dir.ID
	if another {
		log.Warn("another API keeps the blobs in another directory", "directory", dir.Path, "other", path)
	}
	if another && !first {
		return nil
	}
	return store.Blobs.SetBlobPlace(ctx, dir.ID, dir.Path)
}
