package manager

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tdf-framework/tdf"
)

// A Summary says what a round did, and how things stand after it.
type Summary struct {
	Round    int    // of this Run; the first is 1
	Counts   Counts // of the tasks in the groups that Run looks after, at one moment
	Archived int    // tasks archived in this round
	Opened   int    // tasks opened together with them
	Held     int    // tasks whose callbacks will be called again
}

// Done reports whether all tasks are archived.
func (s Summary) Done() bool { return s.Counts.Unfinished() == 0 && s.Counts.Waiting() == 0 }

// String returns one line: how many tasks are done, of how many, and the states that are not empty.
func (s Summary) String() string {
	line := fmt.Sprintf("%d/%d done", done(s.Counts), s.Counts.Total())
	for _, state := range tdf.States {
		if n := s.Counts[state]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, strings.ReplaceAll(string(state), "_", " "))
		}
	}
	return line
}

// done counts the tasks that nobody but their manager has anything to do with.
func done(c Counts) int64 { return c.Total() - c.Unfinished() }

// PrintSummary writes how many tasks are in each state, of all groups or of those named: a
// line for each state, and the total.
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
