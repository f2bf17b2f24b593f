package server

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

type programStore interface {
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	UsePrograms(ctx context.Context, now task.Time, sums ...string) error
	HasPrograms(ctx context.Context) (bool, error)
	NeededPrograms(ctx context.Context) (map[string]string, error)
	RemoveUnused(ctx context.Context, before task.Time, most int64) (removed []string, err error)

	HasBlobs(ctx context.Context) (bool, error)
	UseBlobs(ctx context.Context, sums ...string) (lost []string, err error)
	RemoveUnusedBlobs(ctx context.Context, before task.Time, most int64) error
}

// removedAtOnce is the largest number of stored programs that the server removes after a part of the walk, and
// forgottenAtOnce that of blobs, whose bytes are not in Redis.
const (
	removedAtOnce   = 10
	forgottenAtOnce = 500
)

// keptPrograms follows the audit's walk through all tasks, to find the stored programs that no task names. The walk
// renews the last use of the programs that tasks name, and its end that of programs that stages of pipelines and
// periodics need. Only a complete walk proves that an older program has no task.
type keptPrograms struct {
	ids    []int64   // the tasks of the present part of the walk
	began  task.Time // when the present walk began; 0 if a part of it is missing, because of an error
	part   task.Time // the value of began if the present part succeeds
	ended  bool      // the present part is the end of the walk
	walked task.Time // when the last complete walk began; 0 if there was none
}

// beginPart prepares the next part of the walk. If first is true, a new walk begins.
func (p *keptPrograms) beginPart(now task.Time, first bool) {
	p.ids, p.ended = p.ids[:0], false
	p.part, p.began = p.began, 0
	if first {
		p.part = now
	}
}

// endPart records that the present part is complete. Without this call, the walk proves nothing.
func (p *keptPrograms) endPart() {
	if p.began = p.part; p.ended && p.began > 0 {
		p.walked = p.began
	}
}

// keepPrograms renews the last use of the programs that the tasks of the last part of the walk name. Then it removes
// unused programs.
func (s *Server) keepPrograms(ctx context.Context, now task.Time, grace rules.Grace) error {
	p := &s.audit.programs
	stored, err := s.store.HasPrograms(ctx)
	if err != nil {
		return err
	}
	blobs, err := s.store.HasBlobs(ctx)
	if err != nil {
		return err
	}
	if stored || blobs {
		if err := s.useNamed(ctx, now, p.ids); err != nil {
			return err
		}
	}
	if stored && p.ended {
		needed, err := s.store.NeededPrograms(ctx)
		if err != nil {
			return err
		}
		if err := s.store.UsePrograms(ctx, now, slices.Collect(maps.Keys(needed))...); err != nil {
			return err
		}
	}
	p.endPart()
	if now < grace.Open {
		return nil
	}
	if blobs {
		// a task may name a blob that its round has made long after the blob was stored
		before := max(0, p.walked.Add(-task.BlobKeep))
		if err := s.store.RemoveUnusedBlobs(ctx, before, forgottenAtOnce); err != nil {
			return err
		}
	}
	if !stored {
		return nil
	}
	removed, err := s.store.RemoveUnused(ctx, task.UnusedBefore(now, p.walked, task.ProgramKeep), removedAtOnce)
	for _, sum := range removed {
		s.log.Info("unused program removed", "sha256", sum)
	}
	return err
}

func (s *Server) useNamed(ctx context.Context, now task.Time, ids []int64) error {
	tasks, err := s.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Source | redisstate.Blobs})
	if err != nil {
		return err
	}
	named := map[string]bool{}
	var sums, blobs []string
	for _, t := range tasks {
		if t.Task == nil {
			continue
		}
		if sum := task.StoredProgram(t.Task.Source); sum != "" && !named[sum] {
			named[sum], sums = true, append(sums, sum)
		}
		blobs = append(blobs, t.Task.NamedBlobs()...)
	}
	if _, err := s.store.UseBlobs(ctx, blobs...); err != nil {
		return err
	}
	return s.store.UsePrograms(ctx, now, sums...)
}
