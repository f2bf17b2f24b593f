package dashboard

import (
	"cmp"
	"context"
	"slices"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// A queuesPage is what the page of the queues shows.
type queuesPage struct {
	Queues []admin.Queue
	Others int             // queues that the page leaves out
	Pauses []manager.Pause // of campaigns and of the namespace
	Halted bool            // the namespace is paused
}

// queuesShown is the largest number of queues on the page.
const queuesShown = 500

func loadQueues(ctx context.Context, v *visit) (any, error) {
	of := v.place()
	all, err := of.admin.Queues(ctx)
	if err != nil {
		return nil, err
	}
	page := queuesPage{Queues: busiest(all, queuesShown), Others: len(all) - queuesShown}
	pauses, err := of.manager.Pauses().All(ctx)
	for _, p := range pauses {
		page.Halted = page.Halted || p.Namespace
		if p.Queue == "" {
			page.Pauses = append(page.Pauses, p)
		}
	}
	return page, err
}

// busiest returns the n queues with the most unfinished tasks, or all queues if there are fewer, ordered by name.
func busiest(all []admin.Queue, n int) []admin.Queue {
	shown, _ := counts.Busiest(all, n, func(q *admin.Queue) [2]int64 { return [2]int64{q.Tasks.Unfinished()} })
	slices.SortFunc(shown, func(a, b admin.Queue) int { return cmp.Compare(a.Queue, b.Queue) })
	return shown
}

func changePause(change func(manager.Pauses, context.Context, ...task.Pausable) error) func(context.Context,
	*visit) (string, error) {
	return func(ctx context.Context, v *visit) (string, error) {
		what, ok := task.ParsePausable(v.request.PostForm.Get("pause"))
		if !ok {
			return "", task.NewError(task.CodeInvalid, "pause: want queue=NAME, group=NAME or namespace")
		}
		return "", change(v.actingHere().Pauses(), ctx, what)
	}
}
