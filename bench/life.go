package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/redisstate"
)

// life measures all kinds of calls from the opening of a task to its archiving. It measures one kind after the other.
// The argument batch is the number of tasks per call.
func life(ctx context.Context, r *redisserver.Server, w io.Writer, batch, tasks int) error {
	store, err := connect(ctx, r, "life"+strconv.Itoa(batch))
	if err != nil {
		return err
	}
	defer store.Close()
	l := &lifeCalls{store: store, batch: batch, tasks: tasks}
	m := &meter{r: r, w: w, tasks: tasks}
	for _, step := range []struct {
		call string
		work func(context.Context) error
	}{
		{"open", l.open}, {"claim", l.claim}, {"renew", l.renew}, {"execute", l.execute}, {"settle", l.settle}, {"archive", l.archive},
	} {
		if err := m.measure(ctx, step.call, strconv.Itoa(batch), func() error { return step.work(ctx) }); err != nil {
			return err
		}
	}
	m.print("all calls", strconv.Itoa(batch), m.total, m.spent)
	return nil
}

type lifeCalls struct {
	store  *redisstate.Store
	batch  int
	tasks  int
	claims []redisstate.Claim
}

func (l *lifeCalls) open(ctx context.Context) error {
	definitions := make([]tdf.Properties, l.batch)
	for i := 0; i < l.tasks; i += l.batch {
		for j := range definitions {
			definitions[j] = tdf.Defaults("bench", "rsync:/srv/bench/run.sh", strconv.Itoa(i+j))
		}
		if _, err := l.store.Open(ctx, "manager", definitions...); err != nil {
			return err
		}
	}
	return nil
}

func (l *lifeCalls) claim(ctx context.Context) error {
	for len(l.claims) < l.tasks {
		c, err := l.store.Claim(ctx, redisstate.ClaimRequest{Worker: "worker", Most: l.batch, Lease: 600})
		if err != nil {
			return err
		}
		l.claims = append(l.claims, c.Claims...)
	}
	return nil
}

func (l *lifeCalls) renew(ctx context.Context) error {
	return l.batches(func(claims []redisstate.Claim) error {
		renewals := make([]redisstate.Renewal, len(claims))
		for i, c := range claims {
			renewals[i] = redisstate.Renewal{ID: c.Task.ID, Claim: c.ID, Until: tdf.Never}
		}
		_, err := l.store.Renew(ctx, 600, renewals...)
		return err
	})
}

func (l *lifeCalls) execute(ctx context.Context) error {
	return l.batches(func(claims []redisstate.Claim) error {
		results := make([]tdf.Move, len(claims))
		for i, c := range claims {
			var err error
			if results[i], err = c.Task.Execute(c.ID, tdf.Result{Output: "a hundred bytes or so\n", Exit: "0"}); err != nil {
				return err
			}
		}
		outcomes, err := l.store.Execute(ctx, "worker", results...)
		return firstError(outcomes, err)
	})
}

func (l *lifeCalls) batches(do func([]redisstate.Claim) error) error {
	for i := 0; i < len(l.claims); i += l.batch {
		if err := do(l.claims[i:min(i+l.batch, len(l.claims))]); err != nil {
			return err
		}
	}
	return nil
}

// settle settles due tasks as a server does.
func (l *lifeCalls) settle(ctx context.Context) error {
	for settled := 0; settled < l.tasks; {
		now, err := l.store.Now(ctx)
		if err != nil {
			return err
		}
		n, others, err := l.store.SettleUsual(ctx, "server", tdf.UsualSuccess(), now, l.batch)
		if err != nil {
			return err
		}
		if len(others) > 0 && n == 0 {
			return fmt.Errorf("task %d was not settled", others[0].ID)
		}
		settled += n
	}
	return nil
}

// archive archives finished tasks as a manager does. It reads the whole tasks first.
func (l *lifeCalls) archive(ctx context.Context) error {
	for archived := 0; archived < l.tasks; {
		ids, err := l.store.List(ctx, tdf.Succeeded, "", 0, int64(l.batch))
		if err != nil {
			return err
		}
		tasks, err := l.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			return err
		}
		units := make([]redisstate.Unit, len(tasks))
		for i, t := range tasks {
			m, err := t.Task.Archive()
			if err != nil {
				return err
			}
			units[i].Moves = []tdf.Move{m}
		}
		if err := firstError(l.store.Apply(ctx, "manager", units...)); err != nil {
			return err
		}
		archived += len(tasks)
	}
	return nil
}

func firstError(outcomes []redisstate.Outcome, err error) error {
	for _, o := range outcomes {
		if err == nil {
			err = o.Err
		}
	}
	return err
}
