package worker

import (
	"context"
	"maps"
	"slices"
	"time"
)

// successes is what workers tell each other of programs.
type successes interface {
	NoteSuccesses(ctx context.Context, worker string, programs ...string) error
	SucceededElsewhere(ctx context.Context, worker, program string) (bool, error)
}

// sharePause is between two notes of what succeeded here: a round costs no command more.
const sharePause = time.Minute

// share tells the other workers which programs succeed here, until ctx ends.
func (s *session) share(ctx context.Context) {
	for wait(ctx, s.avoid.news) {
		s.shareOnce(ctx)
		s.sleep(ctx, sharePause)
	}
}

func (s *session) shareOnce(ctx context.Context) {
	programs := s.avoid.takeWells()
	if len(programs) == 0 {
		return
	}
	if err := s.store.NoteSuccesses(ctx, s.name, programs...); err != nil && ctx.Err() == nil {
		s.log.Debug("successes could not be shared", "error", err)
	}
}

// takeWells returns the programs that succeeded here since the last call.
func (a *avoidance) takeWells() []string {
	a.Lock()
	defer a.Unlock()
	programs := slices.Sorted(maps.Keys(a.wells))
	clear(a.wells)
	return programs
}

// hasFailed counts a round that ran and failed. Where there were many in a row, it asks whether other workers fare better.
func (e *execution) hasFailed(ctx context.Context, why string) {
	s := e.s
	if !s.avoid.failed(e.task.Program, why) {
		return
	}
	elsewhere, err := s.store.SucceededElsewhere(ctx, s.name, e.task.Program)
	if err != nil && ctx.Err() == nil {
		e.log.Warn("it is not known whether the program succeeds on other workers", "error", err)
	}
	s.avoid.answer(e.task.Program, elsewhere)
}
