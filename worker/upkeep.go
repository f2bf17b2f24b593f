package worker

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/tdf-framework/tdf/fetch"
)

// upkeepPause is the time between two removals of old programs.
const upkeepPause = 10 * time.Minute

// upkeep removes leftovers of killed workers and unused programs from time to time (docs/operations.md, "What a worker
// keeps on its disk"), until ctx ends.
func (s *supervisor) upkeep(ctx context.Context) {
	for {
		if err := s.removeLeftovers(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("leftovers of killed workers could not be removed", "error", err)
		}
		s.removePrograms(ctx)
		if !wait(ctx, s.after(upkeepPause)) {
			return
		}
	}
}

// removePrograms removes programs that no worker of the working directory has used for the time keep_programs. It marks
// the programs of running rounds as used, so that other workers of the directory keep them.
func (s *supervisor) removePrograms(ctx context.Context) {
	dir, cutoff := s.cfg.Directory, time.Now().Add(-s.cfg.KeepPrograms)
	inUse := map[string]bool{}
	for _, e := range s.executions() {
		inUse[e.programName()] = true
		if s.slotDirs != nil {
			inUse[s.slotDirs.copyOf(e.slot, e.programName())] = true
		}
	}
	programs, err := fetch.Programs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("unused programs could not be found", "error", err)
	}
	for _, p := range programs {
		if inUse[p.Name] {
			fetch.Touch(dir, p.Name)
			continue
		}
		if !p.LastUse.Before(cutoff) {
			continue
		}
		removed, err := fetch.Remove(ctx, dir, p.Name, cutoff)
		if removed {
			s.log.Info("removed an unused program", "program", p.Name, "used", p.LastUse)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			s.log.Warn("an unused program could not be removed", "program", p.Name, "error", err)
		}
	}
}
