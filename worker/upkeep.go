package worker

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf/worker/retention"
)

// upkeepPause is how often old files are looked for.
const upkeepPause = 10 * time.Minute

// upkeep removes what has been on the disk for long enough (docs/operations.md, "What a worker
// keeps on its disk"), now and then, until ctx ends.
func (s *session) upkeep(ctx context.Context) {
	shared := false
	for {
		removed, err := s.retention().Apply(ctx)
		if removed.Files+removed.Programs > 0 {
			s.log.Info("removed what was old", "files", removed.Files, "programs", removed.Programs, "bytes", removed.Bytes)
		}
		told := shared && errors.Is(err, retention.ErrShared)
		if err != nil && ctx.Err() == nil && !told {
			s.log.Warn("not all that is old could be removed", "error", err)
		}
		shared = errors.Is(err, retention.ErrShared)
		if !wait(ctx, time.After(upkeepPause)) {
			return
		}
	}
}

func (s *session) retention() retention.Policy {
	inUse := map[string]bool{}
	for _, e := range s.holds() {
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
