package manager

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tdf-framework/tdf"
)

// A Summary is the result of one round of Run.
type Summary struct {
	Round    int        // the number of the round in this call of Run; the first is 1
	Counts   tdf.Counts // counts the tasks of Callbacks.Groups at one moment after the round
	Archived int        // the number of tasks that the round archived
	Opened   int        // the number of tasks that the round opened
	Waiting  int        // the number of tasks that wait for another call of their callbacks
}

// Done reports whether all tasks are archived.
func (s Summary) Done() bool { return s.Counts.Unfinished() == 0 && s.Counts.Waiting() == 0 }

// String returns one line, such as "3/10 done, 7 open, 3 archived". A task is done when it is finished.
func (s Summary) String() string {
	line := fmt.Sprintf("%d/%d done", s.Counts.Finished(), s.Counts.Total())
	for _, state := range tdf.States {
		if n := s.Counts[state]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, strings.ReplaceAll(string(state), "_", " "))
		}
	}
	return line
}

// PrintSummary writes a table with the number of tasks in each state. It counts the tasks of the given groups, or all
// tasks if no group is given.
func (m *Manager) PrintSummary(ctx context.Context, w io.Writer, groups ...string) error {
	counts, err := m.Counts(ctx, groups...)
	if err != nil {
		return err
	}
	var table strings.Builder
	for _, state := range tdf.States {
		fmt.Fprintf(&table, "%-9s %12d\n", state, counts[state])
	}
	fmt.Fprintf(&table, "%-9s %12d\n", "total", counts.Total())
	_, err = io.WriteString(w, table.String())
	return err
}
