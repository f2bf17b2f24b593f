package tdf

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
		if got := mark.CheckDecision(false); got != want.decision {
			t.Errorf("%q: decision: %v", mark, got)
		}
		if got := mark.CheckDecision(true); got != want.unfinished {
			t.Errorf("%q: decision with unfinished tasks: %v", mark, got)
		}
		for _, state := range States {
			expect.Equal(t, mark.IsComplete(Counts{state: 1}), mark != GroupOpen && state.Finished(), mark, "with a task that", state, "complete")
		}
	}
}
