package admin

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// sameFailures is the number of rounds that must have failed in the same way before firstRounds reports them.
const sameFailures = 20

// firstTasks limits how many tasks are read to compare their failures.
var firstTasks = listing.Bounds{Time: 100 * time.Millisecond, Tasks: 200, Bytes: 4 << 20}

// firstRounds reports that the first rounds of a group all failed in the same way. Most likely, the program or its input is
// wrong, and all other tasks will fail, too.
func (o *openSample) firstRounds(ctx context.Context, s store, counts tdf.Counts, group string) error {
	if group == "" || counts[tdf.Succeeded]+counts[tdf.Archived] > 0 {
		return nil
	}
	first := tdf.Query{Group: group, Order: tdf.OldestFirst, States: []tdf.State{tdf.Open, tdf.Running, tdf.Executed, tdf.Failed, tdf.TimedOut}}
	found, err := failures(ctx, s, first, "", firstTasks)
	if err != nil || len(found.Groups) != 1 || found.Groups[0].Rounds < sameFailures {
		return err
	}
	text := "no task has succeeded, and the first rounds all failed in the same way: " + found.Groups[0].How
	if line := found.Groups[0].Line; line != "" {
		text += ": " + line
	}
	o.obstacles = append(o.obstacles, Fact{
		Code: FactAllFail, About: group, Text: text,
		Fix: fix("pause the campaign, correct the program, and retry the failed tasks with it", StepCorrect),
	})
	return nil
}
