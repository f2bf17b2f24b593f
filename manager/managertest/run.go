package managertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// lease is the lease in seconds of a worker that never reports.
const lease = task.Seconds(30)

// A run is the execution of a program. The test knows its result from the start.
type run struct {
	redisstate.Claim
	began    task.Time
	ends     task.Time
	timesOut bool // whether the worker ends the program at the end of the timeout
	result   Result
}

// A claim claims at most claimed tasks. After mostFruitless claims in a row that read many tasks, but got none, the
// other tasks are left to the next step.
const (
	claimed       = 1000
	mostFruitless = 1000
)

// claim claims and starts the open tasks that may start now, and finds out when the next one may start. Tasks that one
// call of Open opened have start times a microsecond apart. claim advances the clock by these microseconds, so that the
// tasks start together.
func (w *world) claim() error {
	offer, err := w.everything()
	if err != nil {
		return err
	}
	var claims []redisstate.Claim
	for fruitless := 0; ; fruitless++ {
		c, err := w.store.Claim(w.ctx, redisstate.ClaimParams{
			Worker: fmt.Sprintf("worker-%d", w.workers+1), Most: claimed, Lease: lease, Offer: offer,
		})
		if err != nil {
			return err
		}
		if len(c.Claims) > 0 {
			w.workers, fruitless = w.workers+1, 0
			claims = append(claims, c.Claims...)
		}
		w.start = min(c.Next, end)
		switch {
		case w.start <= w.now.Add(aboutInstant):
			w.set(max(w.start, w.now).Add(task.Seconds(fruitless) * instant)) // faster past tasks that cannot start
		case len(c.Claims) < claimed && !c.More || fruitless >= mostFruitless:
			return w.begin(claims)
		}
	}
}

// begin starts the claimed tasks.
func (w *world) begin(claims []redisstate.Claim) error {
	for page := range slices.Chunk(claims, claimed) {
		ids := make([]int64, len(page))
		for i, c := range page {
			ids[i] = c.Task.ID
		}
		stored, err := w.store.Read(w.ctx, ids, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			return err
		}
		var begun []*run
		for i, x := range stored {
			if x.Task != nil {
				begun = append(begun, w.run(&page[i], x.Task))
			}
		}
		if err := w.renew(begun); err != nil {
			return err
		}
	}
	return nil
}

// everything returns an offer for the tasks of all requirements. A test has workers for all queues, tags and handlers.
func (w *world) everything() (*class.Offer, error) {
	known, err := w.store.Counters.Requirements(w.ctx, 0)
	offer := class.Offer{Programs: true, Anything: true}
	for _, p := range known {
		if !p.Known {
			continue
		}
		offer.Tags = append(offer.Tags, p.Tags...)
		if q := (class.QueueShare{Queue: p.Queue}); !slices.Contains(offer.Queues, q) {
			offer.Queues = append(offer.Queues, q)
		}
	}
	return &offer, err
}

// run calls the test's function for the program of a claimed task, and computes when the run ends.
func (w *world) run(c *redisstate.Claim, t *task.Task) *run {
	r := &run{Claim: *c, began: w.now, ends: end, result: w.resultOf(t)}
	if r.result.Duration < Forever {
		r.ends = w.now.Add(task.For(r.result.Duration))
	}
	if over := w.now.Add(t.Timeout); r.ends > over {
		r.ends, r.timesOut = over, true
	}
	if r.result.Lost {
		r.ends = end
	}
	w.change()
	return r
}

func (w *world) resultOf(t *task.Task) Result {
	program, ok := w.programs.Load(t.Program)
	if !ok {
		w.t.Errorf("managertest: task %d needs the program %q, which the test does not set; call Tester.Program", t.ID,
			t.Program)
		return Result{Error: "no such program"}
	}
	args, _, err := t.Arguments()
	if err != nil {
		return Result{Error: err.Error()}
	}
	r := program.(func(Run) Result)(Run{Task: view(t), Args: args, Round: t.Round})
	if r.JSON != "" && !json.Valid([]byte(r.JSON)) {
		w.t.Errorf("managertest: the result.json of task %d is not JSON, so a worker would refuse the result: %q", t.ID,
			r.JSON)
	}
	return r
}

// renew reports that programs have started, with their checkpoints and updates. It drops runs whose tasks were
// cancelled meanwhile.
func (w *world) renew(begun []*run) error {
	for _, lost := range []bool{false, true} {
		until := end.Sub(w.now)
		if lost {
			until = lease
		}
		runs := slices.DeleteFunc(slices.Clone(begun), func(r *run) bool { return r.result.Lost != lost })
		renewals := make([]redisstate.LeaseRenewal, len(runs))
		for i, r := range runs {
			report := redisstate.LiveReport{Updates: r.result.Updates, FirstUpdate: 1}
			if r.result.Checkpoint != "" {
				report.Checkpoint = &r.result.Checkpoint
			}
			renewals[i] = redisstate.LeaseRenewal{
				ID: r.Task.ID, Round: r.Task.Round, Claim: r.ID, Begun: true, Report: report,
			}
		}
		renewed, err := w.store.Renew(w.ctx, until, renewals...)
		if err != nil {
			return err
		}
		for i, r := range runs {
			if renewed.Lost[i] == nil {
				w.runs = append(w.runs, r)
			}
		}
	}
	return nil
}

// report reports the runs that have ended. Redis sorts tasks that finish at the same time by their ids, but compares
// the ids as strings. Therefore one call reports only tasks whose ids have the same number of digits.
func (w *world) report() error {
	slices.SortStableFunc(w.runs, func(a, b *run) int {
		return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.Task.ID, b.Task.ID))
	})
	for first := (*run)(nil); len(w.runs) > 0; w.runs = w.runs[1:] {
		r := w.runs[0]
		first = cmp.Or(first, r)
		if r.ends > w.now || r.ends > first.ends || digits(r) > digits(first) {
			break
		}
		if err := w.execute(r); err != nil {
			return err
		}
		w.change()
	}
	return nil
}

func digits(r *run) int { return len(strconv.FormatInt(r.Task.ID, 10)) }

// execute reports the end of a run, as its worker would. If the task was cancelled or requeued meanwhile, Redis refuses
// the report.
func (w *world) execute(r *run) error {
	worker := r.Task.Current().Worker
	result := rules.Result{
		Output: r.result.Output, Error: r.result.Error, Exit: strconv.Itoa(r.result.Exit), JSON: r.result.JSON,
		Started: r.began, Seconds: r.ends.Sub(r.began), Permanent: r.result.Permanent,
	}
	end := broker.Ending{Claim: r.ID, Result: result}
	switch {
	case r.timesOut:
		end.Way, end.Result.Exit = broker.TimedOut, "signal: terminated"
	case r.result.Later > 0:
		end.Way, end.Delay, end.Reason = broker.Later, task.For(r.result.Later), r.result.Error
	case r.result.unfit != "":
		end.Way, end.Reason = broker.Unfit, r.result.unfit
	}
	one := r.Task
	if end.Way != broker.Done || len(r.result.Opened) > 0 { // a claim leaves out what only these need
		stored, err := w.store.ReadOne(w.ctx, r.Task.ID, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			return err
		}
		one = stored.Task
	}
	var open []task.Properties
	if end.Opens(one) {
		var err error
		if open, err = broker.Properties(one, broker.Numbered("definition %d of Opened", r.result.Opened)); err != nil {
			end.NotOpened(err)
		}
	}
	_, err := w.store.Apply(w.ctx, worker,
		redisstate.Unit{Moves: []rules.Move{end.Move(one)}, Open: open, ByRound: len(open) > 0})
	return err
}
