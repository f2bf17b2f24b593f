package task

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestGroupMarks(t *testing.T) {
	for mark, want := range map[GroupMark]struct{ opening, decision, unfinished error }{
		GroupOpen:    {nil, ErrGroupNotClosed, ErrGroupNotClosed},
		GroupClosed:  {ErrGroupClosed, nil, ErrGroupUnfinished},
		GroupDecided: {ErrGroupDecided, ErrGroupDecided, ErrGroupDecided},
		"unknown":    {ErrGroupClosed, nil, ErrGroupUnfinished},
	} {
		got := mark.CheckOpening()
		expect.True(t, got == want.opening, mark, "opening", got)
		expect.FailsWith(t, mark.CheckDecision(false), want.decision, mark)
		expect.FailsWith(t, mark.CheckDecision(true), want.unfinished, mark)
		for _, state := range States {
			expect.Equal(t, mark.IsComplete(Counts{state: 1}), mark != GroupOpen && state.Finished(), mark, "with a task that", state, "complete")
		}
	}
}
