package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// sound returns a history of one batch that violates no invariant.
func sound() *history {
	h := &history{
		steps: []step{{finished: 1, unfinished: 1}}, callbacks: map[int64][]callback{}, archived: map[int64]fate{},
		batches: []batch{{First: 0}},
	}
	for i := range kinds {
		h.add(inputOf(i))
		h.batches[0].IDs = append(h.batches[0].IDs, int64(i+1))
	}
	h.add("follow 0")
	h.add("child 1")
	h.task("waits 2").After = &task.Dependencies{Tasks: []int64{2}}
	h.task("waits 2").Current().Entered[task.Running] = 9
	return h
}

// add adds an archived task.
func (h *history) add(input string) {
	id, outcome := int64(len(h.tasks)+1), outcomeOf(input)
	t := &task.Task{ID: id, State: task.Archived, Outcome: outcome, Rounds: task.Rounds{0: {
		Entered: map[task.State]task.Time{task.Running: 2, task.Executed: 3, task.State(outcome): 4, task.Archived: 5},
		Output:  outputOf(input),
	}}}
	t.Input = input
	t.Log = fmt.Sprintf("1 m: open\n2 w: running\n3 w: executed\n4 s: %s\n5 m: archived", outcome)
	if outcome == string(task.Failed) {
		t.Fails = 1
	}
	h.tasks = append(h.tasks, redisstate.Stored{ID: id, Task: t, Lists: []task.State{task.Archived}})
	h.callbacks[id] = []callback{{id, input, outputOf(input)}}
	h.archived[id] = fateOf(t)
	h.counts = task.Counts{task.Archived: id}
}

// lose removes the first n tasks, as a failover does.
func (h *history) lose(n int) {
	h.batches[0].Lost, h.setting, h.archived = "x", onSentinel(0, false), map[int64]fate{}
	h.tasks, h.counts = h.tasks[n:], task.Counts{task.Archived: int64(len(h.tasks) - n)}
}

func (h *history) task(input string) *task.Task {
	return h.tasks[h.byInput()[input][0]-1].Task
}

// Each defect of a history violates the invariant that it should, and a sound history violates none.
func TestDefects(t *testing.T) {
	expect.Len(t, sound().violations(), 0)
	lost := sound()
	lost.lose(len(lost.tasks))
	expect.Len(t, lost.violations(), 0)
	logged := func(input, old, now string) func(*history) {
		return func(h *history) {
			one := h.task(input)
			expect.Contains(t, one.Log, old)
			one.Log = strings.Replace(one.Log, old, now, 1)
		}
	}
	for name, c := range map[string]struct {
		spoil func(h *history)
		want  string
	}{
		"no fault":             {func(h *history) { h.steps = nil }, "the run counts: no fault came"},
		"faults without work":  {func(h *history) { h.steps[0].finished = 0 }, "no task had finished between"},
		"faults while idle":    {func(h *history) { h.steps[0].unfinished = 0 }, "1 of 1 faults came while no task was unfinished"},
		"lost open":            {func(h *history) { h.tasks = h.tasks[:len(h.tasks)-1]; h.batches[0].IDs[3] = 77 }, "task 77: the call that opened flaky 3"},
		"opened twice":         {func(h *history) { h.add("plain 8") }, "but the tasks are [9 13]"},
		"unknown open twice":   {func(h *history) { h.batches[0].IDs = nil; h.add("plain 8") }, "opened plain 8 more than once: [9 13]"},
		"opened by no call":    {func(h *history) { h.add("plain 18") }, "no call opened plain 18"},
		"follow-up lost":       {func(h *history) { h.tasks = h.tasks[:10] }, "exactly once: task 1: 0 tasks follow"},
		"follow-up twice":      {func(h *history) { h.add("follow 0") }, "exactly once: task 1: 2 tasks follow: [11 13]"},
		"child of no task":     {func(h *history) { h.add("child 5") }, "it follows no task"},
		"in two lists":         {func(h *history) { h.tasks[4].Lists = append(h.tasks[4].Lists, task.Running) }, "in the lists [archived running]"},
		"list counts more":     {func(h *history) { h.counts[task.Open] = 1 }, "the lists have: open 1 archived 12"},
		"audit":                {func(h *history) { h.audit = []audit.Finding{{ID: 7, Problem: "x"}} }, "no orphans: task 7: tdf check finds: x"},
		"limit not returned":   {func(h *history) { h.limited = 1 }, "the limit counts 1 tasks"},
		"result of no claim":   {logged("plain 8", "2 w: running\n", ""), `after it was "open" in round 0, the log has the line "3 w: executed"`},
		"a repair":             {logged("plain 8", "2 w: running", "2 s: put back as running"), `the log has the line "2 s: put back`},
		"archived twice":       {logged("plain 8", "archived", "archived\n6 m: archived"), `after it was "archived" in round 0`},
		"round not counted":    {logged("plain 8", "3 w", "3 s: lost with its worker w, reopened\n3 v: running\n3 v"), "by its log \"archived\" in round 1"},
		"failure not counted":  {func(h *history) { h.task("doomed 4").Fails = 0 }, "its counter fails is 0, but by its log 1"},
		"counters do not add":  {func(h *history) { h.task("plain 8").Losses = 7 }, "its counters add up to 7"},
		"two results":          {logged("plain 8", "3 w: executed", "3 w: executed\n3 w: executed"), "a round has two results"},
		"output of another":    {func(h *history) { h.task("plain 8").Current().Output = outputOf("plain 9") }, `round 0 has the output "plain 9`},
		"result of a lost run": {func(h *history) { delete(h.task("plain 8").Current().Entered, task.Executed) }, `want ""`},
		"another outcome":      {func(h *history) { h.task("plain 8").Outcome = "failed" }, `with the outcome "failed", want "succeeded"`},
		"not archived":         {func(h *history) { h.task("plain 8").State = task.Succeeded }, "it is succeeded, with the outcome"},
		"callback lost":        {func(h *history) { delete(h.callbacks, 4) }, "task 4: no callback was called"},
		"callback of another":  {func(h *history) { h.callbacks[4][0].Output = "x" }, `task 4: a callback saw the input "flaky 3"`},
		"lost, durable":        {func(h *history) { h.lose(12); h.mayLose = onSentinel(2, false).mayLose }, "the call that opened root 0 returned this id, but x lost"},
		"lost in part":         {func(h *history) { h.lose(6) }, "a failover lost a part of the batch"},
		"callback of no task":  {func(h *history) { h.lose(12); h.failovers = false }, `a callback saw the input "root 0"`},
		"an id of two tasks":   {func(h *history) { h.lose(12); h.batches[0].IDs[1] = 1 }, "an id names one task: task 1: it names root 0"},
		"a wrong message":      {func(h *history) { h.faulty = []string{"x"} }, "a manager wrote x"},
		"too early":            {func(h *history) { h.task("waits 2").Current().Entered[task.Running] = 3 }, "task 3: its round 0 began at 3"},
		"no dependency":        {func(h *history) { h.task("waits 2").After = nil }, "it names no dependency"},
		"changed afterwards":   {func(h *history) { h.task("plain 8").Round = 1 }, "archived tasks do not change: task 9"},
		"removed afterwards":   {func(h *history) { h.tasks = h.tasks[:11] }, "archived tasks do not change: task 12"},
		"left process":         {func(h *history) { h.left = []string{"/proc/7"} }, "nothing is left on a worker: /proc/7"},
	} {
		h := sound()
		c.spoil(h)
		expect.Contains(t, strings.Join(h.violations(), "\n"), c.want, name)
	}
}

// findSpoiled damages a sound world as broken builds of TDF would, and checks that the invariants are then violated.
func (w *world) findSpoiled() {
	w.Helper()
	known := slices.IndexFunc(w.ledger.opened, func(b batch) bool { return len(b.IDs) > 0 })
	b := w.ledger.opened[known]
	lost, twice, other := b.IDs[0], b.IDs[8], b.IDs[9]
	key := func(id int64) string { return fmt.Sprintf("%s:task:%d", namespace, id) }
	r := w.primaries()[0]
	defer r.Close()
	expect.NoError(w, r.Del(w.Context(), key(lost)).Err())
	log := expect.Result(r.HGet(w.Context(), key(twice), "log").Result()).Value(w)
	expect.NoError(w, r.HSet(w.Context(), key(twice), "log", log+"\n9 m: archived").Err())
	expect.NoError(w, r.ZAdd(w.Context(), namespace+":running", redis.Z{Score: 1, Member: other}).Err())
	found := strings.Join(w.history().violations(), "\n")
	for _, want := range []string{
		fmt.Sprintf("task %d: the call that opened %s returned this id, but the tasks are []", lost, inputOf(b.First)),
		fmt.Sprintf("task %d: after it was \"archived\"", twice),
		fmt.Sprintf("archived tasks do not change: task %d", twice),
		fmt.Sprintf("task %d: it is archived, and in the lists [running archived]", other),
		fmt.Sprintf("task %d: tdf check finds: ", lost),
	} {
		expect.Contains(w, found, want)
	}
}
