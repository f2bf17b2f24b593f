package tdf

import "testing"

func TestGroupMarks(t *testing.T) {
	for mark, want := range map[GroupMark]struct{ opening, decision, unfinished error }{
		GroupOpen:    {nil, ErrGroupNotClosed, ErrGroupNotClosed},
		GroupClosed:  {ErrGroupClosed, nil, ErrGroupUnfinished},
		GroupDecided: {ErrGroupDecided, ErrGroupDecided, ErrGroupDecided},
		"unknown":    {ErrGroupClosed, nil, ErrGroupUnfinished},
	} {
		if got := mark.CheckOpening(); got != want.opening {
			t.Errorf("%q: opening: %v", mark, got)
		}
		if got := mark.CheckDecision(false); got != want.decision {
			t.Errorf("%q: decision: %v", mark, got)
		}
		if got := mark.CheckDecision(true); got != want.unfinished {
			t.Errorf("%q: decision with unfinished tasks: %v", mark, got)
		}
		for _, state := range States {
			if got, want := mark.IsComplete(Counts{state: 1}), mark != GroupOpen && state.Finished(); got != want {
				t.Errorf("%q with a task that is %s: complete: %v", mark, state, got)
			}
		}
	}
}
