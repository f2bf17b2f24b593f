package dashboard

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
)

// An overview is what the first page shows.
type overview struct {
	Attention []admin.Diagnosis // problems first
	Stats     admin.Stats
	Status    admin.Status
	States    []stateCount

	Queues      []admin.Queue // the busiest ones
	OtherQueues int
	History     []history
}

type stateCount struct {
	State task.State
	N     int64
}

// diagnoseEvery is how old the diagnoses of the overview may be, because they are expensive.
const diagnoseEvery = 10 * time.Second

func loadOverview(ctx context.Context, v *visit) (any, error) {
	d, of := v.dashboard, v.place()
	if !v.rights.Inspect {
		return overview{}, nil
	}
	all, err := v.diagnoses(ctx)
	if err != nil {
		return nil, err
	}
	var o overview
	for _, severity := range []string{admin.SeverityProblem, admin.SeverityNotice} {
		for _, found := range all {
			if found.Severity == severity {
				o.Attention = append(o.Attention, found)
			}
		}
	}
	if o.Stats, err = of.admin.StatsAgain(ctx, &of.queues); err != nil {
		return nil, err
	}
	counted, err := recent(ctx, &d.facts, "history "+of.name, historyEvery, func() (admin.History, error) {
		return of.admin.History(ctx)
	})
	if err != nil {
		return nil, err
	}
	o.Queues, o.OtherQueues = busiest(o.Stats.Queues, queuesOnOverview), len(o.Stats.Queues)-queuesOnOverview
	o.History = histories(o.Stats.At, counted)
	if o.Status, err = d.progress(ctx, of.name, "", of.admin.Watch); err != nil {
		return nil, err
	}
	for _, state := range task.States {
		o.States = append(o.States, stateCount{state, o.Stats.Counts[state]})
	}
	return o, nil
}

// queuesOnOverview is the largest number of queues on the overview.
const queuesOnOverview = 20

// progressEvery is how old the progress of a group may be. A look of [admin.Watch] needs those before it, so all pages
// share them.
const progressEvery = time.Second

// progress returns the progress of a group, as tdf watch shows it; "" means all tasks. The namespace is "" for all of
// them.
func (d *Dashboard) progress(ctx context.Context, namespace, group string, begin func(group string) *admin.Watch) (
	admin.Status, error,
) {
	of := namespace + " " + group
	watch, err := recent(ctx, &d.facts, "watch "+of, time.Hour, func() (*admin.Watch, error) { return begin(group), nil })
	if err != nil {
		return admin.Status{}, err
	}
	return recent(ctx, &d.facts, "progress "+of, progressEvery, func() (admin.Status, error) {
		return watch.Look(ctx)
	})
}
