package testspace

import (
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// PutTasks writes tasks with these properties, with their entries in the list of their state, and has the audit's
// repair write all other entries.
func PutTasks(t testing.TB, s *redisstate.Store, tasks map[int64]task.Hash) {
	t.Helper()
	var moves []rules.Move
	last, err := walk.LastID(t.Context(), s.Conn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Conn.Redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for id, h := range tasks {
			one, _ := task.ParseTask(id, h)
			m := rules.Placement{ID: id, Task: one}.Reindex("put")
			moves, last = append(moves, m), max(last, id)
			p.HSet(t.Context(), s.Keys.Task(id), map[string]string(h))
			p.ZAdd(t.Context(), s.Keys.List(one.State), redis.Z{Score: float64(m.Score.Min), Member: strconv.FormatInt(id, 10)})
		}
		p.Set(t.Context(), s.Keys.TaskID(), last, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for some := range slices.Chunk(moves, 500) {
		var units []redisstate.Unit
		for _, m := range some {
			units = append(units, redisstate.Unit{Moves: []rules.Move{m}})
		}
		outcomes, err := s.Apply(t.Context(), "test", units...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
	}
}

// StartedSource ends the hold of a source, as if a round of it had started.
func StartedSource(t testing.TB, s *redisstate.Store, source string) {
	t.Helper()
	reason := task.SourceReason(source)
	_, err := s.Conn.Redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.HDel(t.Context(), s.Keys.Failing(), source)
		p.HDel(t.Context(), s.Keys.Paused(), reason)
		p.ZAddXX(t.Context(), s.Keys.Held(), redis.Z{Member: reason})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
