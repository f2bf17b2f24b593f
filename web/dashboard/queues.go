package dashboard

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/manager"
)

// A queuesPage is what the page of the queues shows.
type queuesPage struct {
	Queues []queueRow
	Pauses []manager.Pause // of campaigns and of the namespace
	Halted bool            // the namespace is paused
}

type queueRow struct {
	admin.QueueStatus
	Waited time.Duration // of the oldest open task that workers may claim
}

func loadQueues(ctx context.Context, v *visit) (any, error) {
	d := v.dashboard
	all, err := d.admin.Queues(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := d.admin.Stats(ctx)
	if err != nil {
		return nil, err
	}
	waited := map[string]time.Duration{}
	for _, q := range stats.Queues {
		waited[q.Queue] = q.Waited
	}
	var page queuesPage
	for _, q := range all {
		page.Queues = append(page.Queues, queueRow{q, waited[q.Queue]})
	}
	pauses, err := d.manager.Paused(ctx)
	for _, p := range pauses {
		page.Halted = page.Halted || p.Pausable == tdf.Pausable{}
		if p.Queue == "" {
			page.Pauses = append(page.Pauses, p)
		}
	}
	return page, err
}

// pausable returns what the fields queue and campaign of a form name, or the namespace.
func (v *visit) pausable() (tdf.Pausable, error) {
	what := tdf.Pausable{Queue: v.request.PostForm.Get("queue"), Group: v.request.PostForm.Get("campaign")}
	return what, what.Check()
}

func pause(ctx context.Context, v *visit) (string, error) {
	what, err := v.pausable()
	if err != nil {
		return "", err
	}
	return "", v.manager.Pause(ctx, what)
}

func resume(ctx context.Context, v *visit) (string, error) {
	what, err := v.pausable()
	if err != nil {
		return "", err
	}
	return "", v.manager.Resume(ctx, what)
}
