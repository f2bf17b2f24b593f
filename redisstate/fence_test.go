package redisstate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// afterFirstStep is a hook that calls a function once, after the first step of a read with Rules.
type afterFirstStep struct{ do func() }

func (r *afterFirstStep) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *afterFirstStep) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *afterFirstStep) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		if do := r.do; do != nil && err == nil && strings.Contains(fmt.Sprint(c.Args()), strings.Join(firstFields, " ")) {
			r.do = nil
			do()
		}
		return err
	}
}

// A change that was checked against old values of the task is refused, even if the task changed between two steps of
// the read.
func TestChangeOfATaskThatChangesMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustOpen(t, s, define("a"))
		change := func(c tdf.Changes) error {
			x, err := s.ReadOne(t.Context(), 1, Want{Fields: Rules})
			must(t, err)
			m, err := x.Task.Change(c)
			must(t, err)
			outcomes, err := s.Apply(t.Context(), "m", Unit{Moves: []tdf.Move{m}})
			must(t, err)
			return outcomes[0].Err
		}
		late, soon := tdf.Time(2e9), tdf.Time(1e9)
		s.rdb.AddHook(&afterFirstStep{func() { must(t, change(tdf.Changes{StartAfter: &late})) }})
		if err := change(tdf.Changes{EndBefore: &soon}); err == nil {
			got := task(t, s, 1)
			t.Errorf("the task starts after %v and ends before %v", got.StartAfter, got.EndBefore)
		}
	})
}
