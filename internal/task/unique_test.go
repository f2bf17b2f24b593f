package task

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A task holds its unique key until it has finished, or until it is archived (docs/lifecycle.md, "Unique tasks").
func TestHoldingStates(t *testing.T) {
	for until, want := range map[UniqueUntil]string{
		UntilFinished: "[open running executed]",
		UntilArchived: "[open running executed succeeded failed timed_out expired]",
	} {
		expect.Equal(t, fmt.Sprint(until.HoldingStates()), want, until)
	}
}
