package worker

import (
	"context"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf/internal/worker/retention"
)

// upkeepPause is the time between two removals of old files.
const upkeepPause = 10 * time.Minute

// upkeep removes old files and programs from time to time (docs/operations.md, "What a worker keeps on its disk"),
// until ctx ends.
func (s *supervisor) upkeep(ctx context.Context) {
	s.warnOfSharedNames()
	for {
		if err := s.removeLeftovers(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("leftovers of killed workers could not be removed", "error", err)
		}
		removed, err := s.retention().Apply(ctx)
		if removed.Files+removed.Programs > 0 {
			s.log.Info("removed old files and programs", "files", removed.Files, "programs", removed.Programs, "bytes",
				removed.Bytes)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("some old files could not be removed", "error", err)
		}
		if !wait(ctx, s.after(upkeepPause)) {
			return
		}
	}
}

// warnOfSharedNames warns if the configuration keeps output in files that rounds share.
func (s *supervisor) warnOfSharedNames() {
	for pattern, kept := range map[string]bool{
		s.cfg.TaskOutputFilename: s.cfg.KeepsOutput(),
		s.cfg.TaskErrorFilename:  s.cfg.KeepsError(),
	} {
		if kept && retention.IsShared(pattern) {
			s.log.Warn("a configured file name lacks $taskId: rounds share the file, and it is never removed", "name",
				pattern)
		}
	}
}

func (s *supervisor) retention() retention.Policy {
	inUse := map[string]bool{}
	for _, e := range s.executions() {
		inUse[filepath.Join(s.cfg.Directory, e.programName())] = true
		if s.slotDirs != nil {
			inUse[s.slotDirs.copyOf(e.slot, e.programName())] = true
		}
		for _, path := range e.outputs(e.number.Load()) {
			inUse[path] = true
		}
	}
	return retention.Policy{
		Dir: s.cfg.Directory, Keep: s.cfg.KeepFiles, MaxBytes: s.cfg.MaxFilesBytes, Log: s.log,
		InUse: func(path string) bool { return inUse[path] },
	}
}
