package worker

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf/worker/retention"
)

// upkeepPause is the time between two removals of old files.
const upkeepPause = 10 * time.Minute

// upkeep removes old files and programs from time to time (docs/operations.md, "What a worker keeps on its disk"), until ctx
// ends.
func (s *session) upkeep(ctx context.Context) {
	shared := false
	for {
		removed, err := s.retention().Apply(ctx)
		if removed.Files+removed.Programs > 0 {
			s.log.Info("removed old files and programs", "files", removed.Files, "programs", removed.Programs, "bytes", removed.Bytes)
		}
		logged := shared && errors.Is(err, retention.ErrShared)
		if err != nil && ctx.Err() == nil && !logged {
			s.log.Warn("some old files could not be removed", "error", err)
		}
		shared = errors.Is(err, retention.ErrShared)
		if !wait(ctx, time.After(upkeepPause)) {
			return
		}
	}
}

func (s *session) retention() retention.Policy {
	inUse := map[string]bool{}
	for _, e := range s.executions() {
		inUse[filepath.Join(s.cfg.Directory, e.task.Program)] = true
		for _, path := range e.outputs(e.number.Load()) {
			inUse[path] = true
		}
	}
	return retention.Policy{
		Dir: s.cfg.Directory, OutputPattern: s.cfg.TaskOutputFilename, ErrorPattern: s.cfg.TaskErrorFilename,
		Keep: s.cfg.KeepFiles, MaxBytes: s.cfg.MaxFilesBytes, Log: s.log,
		InUse: func(path string) bool { return inUse[path] },
	}
}
