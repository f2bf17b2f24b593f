package broker

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// A fullFor is a store in which an owner has its share of Redis's memory.
type fullFor struct {
	store
	err error
}

func (s fullFor) CheckShare(_ context.Context, owner string) error {
	if owner == "eve" {
		return s.err
	}
	return nil
}

// New tasks of a round count for the owner of its task. If Redis cannot tell, the report fails, and not the round.
func TestFollowUpsHaveAShare(t *testing.T) {
	full, away := task.NewError(task.CodeFull, "full"), task.NewError(task.CodeUnavailable, "away")
	for _, c := range []struct {
		owner       string
		open        int
		err         error
		closed, got error
	}{{"eve", 1, full, full, nil}, {"eve", 0, full, nil, nil}, {"bob", 1, full, nil, nil}, {"eve", 1, away, nil, away}} {
		one := &task.Task{ID: 1, State: task.Running, Properties: task.Properties{Owner: c.owner}, Rounds: task.Rounds{0: {Claim: "c"}}}
		x := &reportDelivery{Report: &Report{Run: Run{ID: 1, Claim: "c"}, Open: make([]task.Definition, c.open)}, Delivery: Delivery{Task: one}}
		expect.Equal(t, x.checkShare(t.Context(), fullFor{err: c.err}), c.got, c.owner, c.open)
		expect.Equal(t, x.closed, c.closed, c.owner, c.open)
	}
}
