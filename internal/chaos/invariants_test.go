package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// A history is what is known of a world when all tasks are archived and all processes have ended.
type history struct {
	steps     []step
	batches   []batch              // the calls that opened tasks
	callbacks map[int64][]callback // by the ids of the tasks
	faulty    []string             // wrong messages of managers
	archived  map[int64]fate       // tasks as they were soon after they had been archived
	left      []string             // directories and processes of rounds that exist

	tasks   []redisstate.Stored // all tasks of Redis
	counts  task.Counts
	audit   []audit.Finding
	limited int // the tasks that the limit counts

	leaps []leap
	setting
}

// A fate is what must not change of an archived task.
type fate struct {
	State           task.State
	Outcome, Output string
	Round, Fails    int
	Losses          int
	Log             string
}

func fateOf(t *task.Task) fate {
	return fate{t.State, t.Outcome, t.LastOutput(), t.Round, t.Fails, t.Losses, t.Log}
}

// A report is called for each violation of an invariant. The id is 0 if no single task violates it.
type report func(id int64, format string, args ...any)

// invariants are what holds in every history.
var invariants = []struct {
	name  string
	check func(h *history, violated report)
}{
	{"the run counts", enoughWork},
	{"acknowledged tasks exist, unknown ones at most once", opensOnce},
	{"follow-ups and tasks that a result opens exist exactly once", followsOnce},
	{"a task is in exactly the list of its state", inOneList},
	{"no orphans", noOrphans},
	{"only legal transitions, and counters add up", legal},
	{"at most one result in a round: what the program printed", oneResult},
	{"every task ends as its kind wants", ends},
	{"callbacks see each task, as it is", calledBack},
	{"an id names one task", named},
	{"dependents run after their dependencies", inOrder},
	{"archived tasks do not change", unchanged},
	{"nothing is left on a worker", nothingLeft},
}

// violations returns the violations of all invariants, with the logs of the tasks.
func (h *history) violations() (all []string) {
	tasks := map[int64]*task.Task{}
	for _, t := range h.tasks {
		tasks[t.ID] = t.Task
	}
	for _, i := range invariants {
		i.check(h, func(id int64, format string, args ...any) {
			text := i.name + ": " + fmt.Sprintf(format, args...)
			if id != 0 {
				text = fmt.Sprintf("%s: task %d: %s", i.name, id, fmt.Sprintf(format, args...))
			}
			if t := tasks[id]; t != nil {
				text += fmt.Sprintf("\n  %s: %s\n  %s", t.Input, t.State, strings.ReplaceAll(t.Log, "\n", "\n  "))
				for n, r := range t.Rounds.All() {
					text += fmt.Sprintf("\n  round %d printed %q and %q", n, r.Output, r.Error)
				}
			}
			all = append(all, text)
		})
	}
	return all
}

// enoughWork requires that faults came while tasks were unfinished, after others had finished.
func enoughWork(h *history, violated report) {
	idle := 0
	for n, s := range h.steps {
		if s.finished == 0 {
			violated(0, "no task had finished between fault %d and the one before", n+1)
		}
		if s.unfinished == 0 {
			idle++
		}
	}
	if idle*10 > len(h.steps) {
		violated(0, "%d of %d faults came while no task was unfinished", idle, len(h.steps))
	}
	if len(h.steps) == 0 {
		violated(0, "no fault came")
	}
}

// byInput returns the ids of the tasks with each input.
func (h *history) byInput() map[string][]int64 {
	ids := map[string][]int64{}
	for _, t := range h.tasks {
		ids[t.Task.Input] = append(ids[t.Task.Input], t.ID)
	}
	return ids
}

func opensOnce(h *history, violated report) {
	found, opened := h.byInput(), map[string]bool{}
	for _, b := range h.batches {
		for i := range kinds {
			input := inputOf(b.First + i)
			ids := found[input]
			opened[input] = true
			switch {
			case b.Lost != "":
				if !h.mayLose(b.Lost) {
					violated(b.IDs[i], "the call that opened %s returned this id, but %s lost the task", input, b.Lost)
				}
				if len(ids) > 0 {
					violated(ids[0], "a failover lost a part of the batch of this task")
				}
			case len(b.IDs) == 0 && len(ids) > 1:
				violated(ids[1], "a call without an answer opened %s more than once: %v", input, ids)
			case len(b.IDs) > 0 && !slices.Equal(ids, b.IDs[i:i+1]):
				violated(b.IDs[i], "the call that opened %s returned this id, but the tasks are %v", input, ids)
			}
		}
	}
	for _, t := range h.tasks {
		kind, _, _ := strings.Cut(t.Task.Input, " ")
		if slices.Contains(kinds, kind) && !opened[t.Task.Input] {
			violated(t.ID, "no call opened %s", t.Task.Input)
		}
	}
}

func followsOnce(h *history, violated report) {
	found, expected := h.byInput(), map[string]bool{}
	for _, t := range h.tasks {
		next := following(t.Task.Input)
		if next == "" {
			continue
		}
		expected[next] = true
		if ids := found[next]; len(ids) != 1 {
			violated(t.ID, "%d tasks follow: %v", len(ids), ids)
		}
	}
	for input, ids := range found {
		kind, _, _ := strings.Cut(input, " ")
		if !slices.Contains(kinds, kind) && !expected[input] {
			violated(ids[0], "it follows no task")
		}
	}
}

func inOneList(h *history, violated report) {
	counts := task.Counts{}
	for _, t := range h.tasks {
		counts[t.Task.State]++
		if !slices.Equal(t.Lists, []task.State{t.Task.State}) {
			violated(t.ID, "it is %s, and in the lists %v", t.Task.State, t.Lists)
		}
	}
	maps.DeleteFunc(h.counts, func(_ task.State, n int64) bool { return n == 0 })
	if !maps.Equal(counts, h.counts) {
		violated(0, "there are tasks: %v; the lists have: %v", counts, h.counts)
	}
}

func noOrphans(h *history, violated report) {
	for _, f := range h.audit {
		violated(f.ID, "tdf check finds: %s", f.Problem)
	}
	if h.limited != 0 {
		violated(0, "the limit counts %d tasks", h.limited)
	}
}

// A transition of a log.
type transition struct {
	verb rules.Verb
	to   task.State
}

// notes has the transitions by the beginnings of their notes in logs. A longer beginning comes first.
var notes = []struct {
	beginning string
	transition
}{
	{"open: what it waited for has ended", transition{rules.VerbUnblock, task.Open}},
	{"open: a new place in the queue", transition{rules.VerbRescore, task.Open}},
	{"open", transition{rules.VerbOpen, task.Open}},
	{"running: its lease counts from now", transition{rules.VerbRescore, task.Running}},
	{"running", transition{rules.VerbClaim, task.Running}},
	{"executed", transition{rules.VerbExecute, task.Executed}},
	{"succeeded", transition{rules.VerbSucceed, task.Succeeded}},
	{"failed, reopened", transition{rules.VerbFail, task.Open}},
	{"failed: ", transition{rules.VerbReject, task.Failed}},
	{"failed", transition{rules.VerbFail, task.Failed}},
	{"released: ", transition{rules.VerbRelease, task.Open}},
	{"unclaimed: ", transition{rules.VerbUnclaim, task.Open}},
	{"archived", transition{rules.VerbArchive, task.Archived}},
}

// transitionOf returns the transition of a line of a log. Its verb is "" if the line is none of a transition that
// happens in a world, such as a repair.
func transitionOf(line string) transition {
	_, note, _ := strings.Cut(line, ": ")
	if strings.HasPrefix(note, "lost with its worker ") {
		if strings.HasSuffix(note, ", reopened") {
			return transition{rules.VerbLose, task.Open}
		}
		return transition{rules.VerbLose, task.Failed}
	}
	for _, n := range notes {
		if strings.HasPrefix(note, n.beginning) {
			return n.transition
		}
	}
	return transition{}
}

// legal follows the log of each task through the table of transitions.
func legal(h *history, violated report) {
	for _, t := range h.tasks {
		state, round, counts := task.None, 0, map[task.Counter]int{}
		// A report may settle its round. Then one line has both transitions (docs/lifecycle.md, "Results").
		log := strings.ReplaceAll(t.Task.Log, ": executed, ", ": executed\n: ")
		for line := range strings.SplitSeq(log, "\n") {
			step := transitionOf(line)
			n := slices.IndexFunc(rules.Transitions, func(tr rules.Transition) bool {
				return tr.Verb == step.verb && tr.To == step.to && slices.Contains(tr.From, state)
			})
			if n < 0 {
				violated(t.ID, "after it was %q in round %d, the log has the line %q", state, round, line)
				break
			}
			row := rules.Transitions[n]
			state = row.To
			counts[row.Counts]++
			if row.NewRound {
				round++
			}
		}
		if state != t.Task.State || round != t.Task.Round {
			violated(t.ID, "it is %s in round %d, but by its log %q in round %d", t.Task.State, t.Task.Round, state, round)
		}
		for counter, n := range map[task.Counter]int{
			task.Fails: t.Task.Fails, task.Timeouts: t.Task.Timeouts, task.Losses: t.Task.Losses,
			task.Releases: t.Task.Releases, task.Reopens: t.Task.Reopens,
		} {
			if counts[counter] != n {
				violated(t.ID, "its counter %s is %d, but by its log %d", counter, n, counts[counter])
			}
		}
		if text := rules.CounterMismatch(t.Placement().Task); text != "" {
			violated(t.ID, "%s", text)
		}
	}
}

func oneResult(h *history, violated report) {
	for _, t := range h.tasks {
		for n, r := range t.Task.Rounds.All() {
			want := ""
			if r.Entered[task.Executed] > 0 {
				want = outputOf(t.Task.Input)
			}
			if r.Output != want {
				violated(t.ID, "round %d has the output %q, want %q", n, r.Output, want)
			}
		}
		executed := 0
		for line := range strings.SplitSeq(t.Task.Log, "\n") {
			switch transitionOf(line).verb {
			case rules.VerbClaim:
				executed = 0
			case rules.VerbExecute:
				executed++
			}
			if executed > 1 {
				violated(t.ID, "a round has two results")
			}
		}
	}
}

func ends(h *history, violated report) {
	for _, t := range h.tasks {
		if want := outcomeOf(t.Task.Input); t.Task.State != task.Archived || t.Task.Outcome != want {
			violated(t.ID, "it is %s, with the outcome %q, want %q", t.Task.State, t.Task.Outcome, want)
		}
	}
}

func calledBack(h *history, violated report) {
	for _, text := range h.faulty {
		violated(0, "a manager wrote %s", text)
	}
	known := map[int64]string{}
	for _, t := range h.tasks {
		known[t.ID] = t.Task.Input
		if len(h.callbacks[t.ID]) == 0 {
			violated(t.ID, "no callback was called")
		}
	}
	for id, calls := range h.callbacks {
		for _, c := range calls {
			if h.failovers && known[id] == "" {
				known[id] = c.Input // a callback was called, and then a failover lost the task
			}
			if c.Input != known[id] || c.Output != outputOf(c.Input) {
				violated(id, "a callback saw the input %q and the output %q", c.Input, c.Output)
			}
		}
	}
}

// named requires that no id that was given out before a failover names another task after it.
func named(h *history, violated report) {
	names := map[int64]string{}
	name := func(id int64, input string) {
		if before, ok := names[id]; ok && before != input {
			violated(id, "it names %s and %s", before, input)
		}
		names[id] = input
	}
	for _, t := range h.tasks {
		name(t.ID, t.Task.Input)
	}
	for id, calls := range h.callbacks {
		for _, c := range calls {
			name(id, c.Input)
		}
	}
	for _, b := range h.batches {
		for i, id := range b.IDs {
			name(id, inputOf(b.First+i))
		}
	}
}

func inOrder(h *history, violated report) {
	tasks := map[int64]*task.Task{}
	for _, t := range h.tasks {
		tasks[t.ID] = t.Task
	}
	for _, t := range h.tasks {
		if !strings.HasPrefix(t.Task.Input, "waits ") {
			continue
		}
		if t.Task.After == nil || len(t.Task.After.Tasks) != 1 {
			violated(t.ID, "it names no dependency")
			continue
		}
		needed := tasks[t.Task.After.Tasks[0]]
		if needed == nil {
			violated(t.ID, "its dependency %d is no task", t.Task.After.Tasks[0])
			continue
		}
		ended := needed.Current().Entered[task.Succeeded]
		for n, r := range t.Task.Rounds.All() {
			at := r.Entered[task.Running]
			if at > 0 && (ended == 0 || at < ended) && !h.isNearLeap(at) && !h.isNearLeap(ended) {
				violated(t.ID, "its round %d began at %v, and its dependency %d succeeded at %v:\n%s", n, at, needed.ID,
					ended, needed.Log)
			}
		}
	}
}

// isNearLeap reports whether the clock was wrong when Redis gave out a time.
func (h *history) isNearLeap(at task.Time) bool {
	return slices.ContainsFunc(h.leaps, func(l leap) bool {
		return task.At(l.begin.Add(-maxLeap)) <= at && at <= task.At(l.end.Add(maxLeap))
	})
}

func unchanged(h *history, violated report) {
	now := map[int64]fate{}
	for _, t := range h.tasks {
		now[t.ID] = fateOf(t.Task)
	}
	for id, was := range h.archived {
		if now[id] != was {
			violated(id, "it was %+v, and is %+v", was, now[id])
		}
	}
}

func nothingLeft(h *history, violated report) {
	for _, text := range h.left {
		violated(0, "%s", text)
	}
}
