package main

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/manager"
)

// chainBar measures a chain of tasks. The callback of each task opens the next task. The configuration key
// round_duration has its default, 1 s.
func chainBar() *bar {
	return &bar{
		name: "chain", unit: "ms per link",
		sides: []side{{tdfSide, redisserver.Shipped, chains}},
		wants: []want{atMost(10, "ms per link", value(tdfSide))},
	}
}

func chains(t *trial) (figure, error) {
	opener, err := tdfSystem{}.opener(t, job{Tasks: t.links})
	if err != nil {
		return figure{}, err
	}
	if err := t.startServer(); err != nil {
		return figure{}, err
	}
	if _, err := t.idleWorker(tdfSystem{}, job{Slots: slots}); err != nil {
		return figure{}, err
	}
	var took opened
	if err := opener.Call("chain", &took); err != nil {
		return figure{}, err
	}
	if err := t.stopChildren(); err != nil {
		return figure{}, err
	}
	return figure{Value: took.Seconds / float64(t.links) * 1000}, tdfSystem{whole: true}.checkProcessed(t, t.links)
}

// chain opens the first task, and runs the manager until all tasks of the chain are archived. The time that chain
// returns does not include the run times of the tasks.
func chain(ctx context.Context, m *manager.Manager, links int) (any, error) {
	began := time.Now()
	if _, err := m.Open(ctx, definition(0)); err != nil {
		return nil, err
	}
	number, ran := int64(0), time.Duration(0)
	err := m.Run(ctx, manager.Callbacks{
		AllGroups: true,
		Succeeded: func(_ context.Context, t *manager.Finished) error {
			ran += t.LastRun().RunTime
			number++
			if number < int64(links) {
				t.Open(definition(number))
			}
			return nil
		},
		Stop: func(_ context.Context, s manager.Summary) bool { return s.Counts[tdf.Archived] >= int64(links) },
	})
	return opened{(time.Since(began) - ran).Seconds()}, err
}
