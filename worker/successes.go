package worker

import (
	"context"
	"maps"
	"slices"
	"time"
)

// sharePause is the time between two calls that share successes, so that not every round needs a call.
const sharePause = time.Minute

// shareSuccesses shares with the other workers which programs succeed here, until ctx ends.
func (s *lane) shareSuccesses(ctx context.Context) {
	for wait(ctx, s.breakers.succeed) {
		s.shareOnce(ctx)
		s.sleep(ctx, sharePause)
	}
}

func (s *lane) shareOnce(ctx context.Context) {
	programs := s.breakers.takeSuccesses()
	if len(programs) == 0 {
		return
	}
	if err := s.broker.NoteSuccesses(ctx, s.name, programs...); err != nil && ctx.Err() == nil {
		s.log.Debug("successes could not be shared", "error", err)
	}
}

// takeSuccesses returns the programs that succeeded here since the last call.
func (bs *breakers) takeSuccesses() []string {
	bs.Lock()
	defer bs.Unlock()
	programs := slices.Sorted(maps.Keys(bs.successes))
	clear(bs.successes)
	return programs
}

// countFailure counts a round that ran and failed. After many failures in a row, countFailure asks whether the program
// succeeds on other workers.
func (e *execution) countFailure(ctx context.Context, reason string) {
	s := e.s
	if !s.breakers.failed(e.task.Program, reason) {
		return
	}
	elsewhere, err := s.broker.SucceededElsewhere(ctx, s.name, e.task.Program)
	if err != nil && ctx.Err() == nil {
		e.log.Warn("the worker could not ask whether the program succeeds on other workers", "error", err)
	}
	s.breakers.decide(e.task.Program, elsewhere)
}
