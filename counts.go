package tdf

import (
	"fmt"
	"strings"
)

// Counts holds the number of tasks in each state.
type Counts map[State]int64

// Total returns the number of all tasks.
func (c Counts) Total() int64 {
	var total int64
	for _, n := range c {
		total += n
	}
	return total
}

// Unfinished returns the number of open, running and executed tasks.
func (c Counts) Unfinished() int64 { return c[Open] + c[Running] + c[Executed] }

// Waiting returns the number of finished tasks that are not archived.
func (c Counts) Waiting() int64 { return c[Succeeded] + c[Failed] + c[TimedOut] + c[Expired] }

// Finished returns the number of finished tasks, archived ones included.
func (c Counts) Finished() int64 { return c.Total() - c.Unfinished() }

// String returns the number of tasks in each state that has tasks, such as "open 4 running 2". The states come in the
// order of a task's life.
func (c Counts) String() string {
	var parts []string
	for _, state := range States {
		if c[state] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, c[state]))
		}
	}
	return strings.Join(parts, " ")
}
