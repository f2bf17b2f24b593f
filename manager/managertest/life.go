package managertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// lease is how long a worker may be silent.
const lease = tdf.Seconds(30)

// instant is the least step of the clock: some moments have to be over before they count.
const instant = tdf.Seconds(1e-6)

// running is a round under way, whose result is known beforehand.
type running struct {
	timedOut bool // its worker ends it then
	claim    string
	result   Result
	ends     tdf.Time
}

// pass lets time pass until a task is done that the manager was not woken for, at the latest
// until then. Where no task waits for the manager, it goes past that, to the next thing that happens.
func (w *world) pass(until tdf.Time) {
	for w.settle(); w.done == w.told; w.settle() {
		next := w.next()
		if next == tdf.Never || next > until && w.waiting() {
			w.now = max(w.now, until)
			return
		}
		w.now = max(w.now, next)
	}
	w.told = w.done
}

// waiting reports whether a task waits for the manager.
func (w *world) waiting() bool {
	for _, e := range w.tasks {
		if e.state().Settled() {
			return true
		}
	}
	return false
}

// settle makes everything happen that is due.
func (w *world) settle() {
	for again := true; again; {
		again = false
		for _, id := range w.ids() {
			for !w.tasks[id].state().Finished() && w.step(id) {
				again = true
			}
		}
	}
}

// step takes a task one transition further, if it is time for that.
func (w *world) step(id int64) bool {
	t, e := w.task(id), w.tasks[id]
	if t.State == tdf.Running && e.run.ends <= w.now {
		w.execute(t, e.run)
		return true
	}
	if m, ok := t.Settle(w.now, nil); ok {
		w.move("server", &m)
		return true
	}
	if t.State == tdf.Open && e.score <= w.now {
		w.claim(t, e)
		return true
	}
	return false
}

// next returns when something happens that has not happened yet; Never: nothing does.
func (w *world) next() tdf.Time {
	next := tdf.Never
	for id, e := range w.tasks {
		if e.state().Finished() {
			continue
		}
		t := w.task(id)
		at := t.NextDue(w.now)
		switch t.State {
		case tdf.Open:
			at = min(at, e.score)
		case tdf.Running:
			at = min(at.Add(instant), e.run.ends)
		}
		next = min(next, at)
	}
	return next
}

// claim has a worker of its own take the task, and asks the test what its program does.
func (w *world) claim(t *tdf.Task, e *entry) {
	worker := fmt.Sprintf("worker-%d", t.ID)
	r := &running{claim: fmt.Sprintf("claim-%d-%d", t.ID, t.Round), ends: tdf.Never}
	e.hash["state"] = string(tdf.Running)
	e.hash["deadline"] = min(t.EndBefore, w.now.Add(t.Timeout)).String()
	e.hash["lease_until"] = tdf.Never.String() // it renews its lease
	e.hash[tdf.RoundField(t.Round, string(tdf.Running))] = w.now.String()
	e.hash[tdf.RoundField(t.Round, tdf.RoundWorker)] = worker
	e.hash[tdf.RoundField(t.Round, tdf.RoundClaim)] = r.claim
	e.note(w.now, worker, "running")
	e.run, e.score, w.changed = r, w.now, w.now
	r.result = w.result(w.task(t.ID))
	if e.run == r {
		w.report(t, e, r)
	}
	r.ends = w.now.Add(r.result.Seconds)
	over := w.now.Add(t.Timeout)
	switch {
	case e.run != r:
	case r.result.Lost:
		r.ends = tdf.Never
		e.hash["lease_until"] = w.now.Add(lease).String()
	case r.ends > over:
		r.ends, r.timedOut = over, true
	}
}

// report keeps what a program tells while it runs.
func (w *world) report(t *tdf.Task, e *entry, r *running) {
	if r.result.Checkpoint != "" {
		e.hash[tdf.FieldCheckpoint] = r.result.Checkpoint
	}
	for i, line := range r.result.Updates {
		e.updates = append(e.updates, redisstate.Update{Round: t.Round, Number: i + 1, Time: w.now, Line: line})
	}
	if r.result.JSON != "" && !json.Valid([]byte(r.result.JSON)) {
		w.t.Errorf("managertest: task %d leaves a result.json that is no JSON; a worker would refuse it: %q", t.ID, r.result.JSON)
	}
}

func (w *world) result(t *tdf.Task) Result {
	program := w.programs[t.Program]
	if program == nil {
		w.t.Errorf("managertest: task %d wants the program %q, of which the test says nothing: see Tester.Program", t.ID, t.Program)
		return Result{Error: "no such program"}
	}
	args, err := tdf.SplitInput(t.Input)
	if err != nil {
		return Result{Error: err.Error()}
	}
	w.mu.Unlock() // it may look at the tester
	defer w.mu.Lock()
	return program(Run{Task: t, Args: args, Round: t.Round})
}

// execute has the worker report how the round ended.
func (w *world) execute(t *tdf.Task, r *running) {
	m, err := t.TimeOut()
	m = m.WithResult(tdf.Result{Output: r.result.Output, Error: r.result.Error, Exit: "signal: terminated", JSON: r.result.JSON})
	if !r.timedOut {
		m, err = t.Execute(r.claim, tdf.Result{Output: r.result.Output, Error: r.result.Error, Exit: strconv.Itoa(r.result.Exit), Seconds: r.result.Seconds, JSON: r.result.JSON})
	}
	if err != nil {
		w.t.Errorf("managertest: %v", err)
		return
	}
	w.move(t.Current().Worker, &m)
}

// stuckAfter is how long nothing may happen before that is taken for good.
const stuckAfter = tdf.Seconds(60 * 60)

// stuck returns an error if nothing can ever happen any more.
func (w *world) stuck() error {
	if w.next() < tdf.Never || w.now.Sub(w.changed) < stuckAfter {
		return nil
	}
	lines := []string{"managertest: Run waits, and nothing will happen any more:"}
	for _, id := range w.ids() {
		if t := w.task(id); t.State != tdf.Archived {
			lines = append(lines, fmt.Sprintf("task %d (%s %s) is %s: %s", id, t.Program, t.Input, t.State, why(t)))
		}
	}
	if len(lines) == 1 {
		lines = append(lines, "there is no task left, but Stop does not return true")
	}
	return errors.New(strings.Join(lines, "\n  "))
}

func why(t *tdf.Task) string {
	if t.State == tdf.Running {
		return "its program never ends, and it has neither a timeout nor an end_before"
	}
	return "its callback does not let it go, or it is in no group that Run looks after"
}
