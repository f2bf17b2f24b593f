package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A taskPage is what the page of a task shows.
type taskPage struct {
	*manager.Task
	Now     time.Time
	Verbs   []verb // what the user can do in the task's state
	Facts   []taskFact
	Rounds  []roundRow
	Chosen  *manager.Round // whose output the page shows; nil if the task has never run
	Streams []stream
	Output  *transcript // of the chosen round, while it runs; or nil
	// what is known of the output of the chosen round, if its worker has not reported the output; or nil
	Tail   *output
	Log    []string
	LogCut int // lines that are missing at the beginning
	Graph  *graph
}

// A taskFact is a property of a task.
type taskFact struct{ Name, Value string }

// A stream is one of the outputs of a round.
type stream struct {
	Name, Label string
	output
	Size  int64 // in bytes, of all that the program has printed
	Raw   string
	Whole bool // Redis has all of it
}

// Title returns the title of the page.
func (t taskPage) Title() string { return "Task " + t.Name() }

// TaskAddress returns the path of the page of a task.
func TaskAddress(name string) string { return Base + "/tasks/" + url.PathEscape(name) }

func aboutTask(v *visit) Subject {
	_, text := manager.SplitTaskName(v.path("id"))
	id, _ := strconv.ParseInt(text, 10, 64)
	return Subject{IDs: []int64{id}, Owner: v.owner}
}

// Bounds of the page of a task.
const (
	shownRounds = 50
	shownLog    = 200
)

func loadTask(ctx context.Context, v *visit) (any, error) {
	t, of, err := v.task(ctx)
	if err != nil {
		return nil, err
	}
	now, err := of.manager.Now(ctx)
	if err != nil {
		return nil, err
	}
	page := taskPage{Task: t, Now: now, Facts: factsOf(t), Log: t.Log}
	for _, what := range verbs {
		if possible(what.Verb, t.State) {
			page.Verbs = append(page.Verbs, what)
		}
	}
	if cut := len(page.Log) - shownLog; cut > 0 {
		page.Log, page.LogCut = page.Log[cut:], cut
	}
	page.Rounds = roundRows(t, now)
	page.Chosen = t.LastRun()
	if n, err := strconv.Atoi(v.query.Get("round")); err == nil {
		if _, page.Chosen, err = of.admin.Round(ctx, t.ID, n); err != nil {
			return nil, err
		}
		if page.Chosen == nil {
			return nil, admin.ErrNoRound
		}
	}
	if r := page.Chosen; r != nil {
		page.Streams = streamsOf(t, r)
		if r.Ended.IsZero() && t.State == task.Running {
			page.Output = v.dashboard.outputs.of(of, t.ID, r)
			// so that the worker reports each second while the page is open
			if err := of.admin.Follow(ctx, t.ID); err != nil {
				return nil, err
			}
		} else if r.Tail != "" && r.Output == "" && r.Error == "" {
			tail := outputOf(r.Tail)
			page.Tail = &tail
		}
	}
	page.Graph, err = v.graphOf(ctx, of, t)
	return page, err
}

// possible reports whether a manager can do something to a task in a state.
func possible(v rules.Verb, from task.State) bool {
	return slices.ContainsFunc(rules.Transitions, func(tr rules.Transition) bool {
		return tr.Verb == v && slices.Contains(tr.From, from) && slices.Contains(tr.By, rules.Manager)
	}) || v == rules.VerbChange && from == task.Open
}

// factsOf returns the properties of a task that differ from their defaults.
func factsOf(t *manager.Task) (all []taskFact) {
	add := func(name, value string) {
		if value != "" && value != "0" {
			all = append(all, taskFact{name, value})
		}
	}
	properties := t.Properties(task.Defaults("", "", ""))
	properties.Input = t.Label()
	for i := range task.PropertyTable {
		if p := &task.PropertyTable[i]; p.Shown(&properties) {
			value := p.Text(&properties)
			switch {
			case p.Name == "source":
				value = task.HideCredentials(value)
			case p.Unit == task.UnitTime:
				if at, err := task.ParseTime(value); err == nil && at < task.Never {
					value = at.Std().UTC().Format("2006-01-02 15:04:05 UTC")
				}
			}
			add(strings.ReplaceAll(p.Name, "_", " "), value)
		}
	}
	for _, c := range []struct {
		name string
		n    int
	}{
		{"fails so far", t.Fails},
		{"timeouts so far", t.Timeouts},
		{"losses", t.Losses},
		{"releases", t.Releases},
		{"retries", t.Reopens},
		{"changes", t.Revision},
		{"checkpoint, in bytes", len(t.Checkpoint)},
	} {
		add(c.name, strconv.Itoa(c.n))
	}
	if t.InputReplaced {
		add("input replaced", "yes: the parameters in the meta are those of an earlier input")
	}
	add("not on", strings.Join(t.NotOn, ", "))
	return all
}

// A roundRow is a round on the timeline. Its bars are in thousandths of the width.
type roundRow struct {
	*manager.Round
	Ending            string
	Class             string
	Waited            time.Duration // from the time when the round could be claimed to its start
	WaitX, WaitW      int
	RunX, RunW        int
	Y                 int
	HasWaited, HasRun bool
}

// roundRows returns the last rounds of a task, in order.
func roundRows(t *manager.Task, now time.Time) (rows []roundRow) {
	rounds := t.Rounds[max(0, len(t.Rounds)-shownRounds):]
	if len(rounds) == 0 {
		return nil
	}
	first, last := now, time.Time{}
	for i := range rounds {
		r := &rounds[i]
		for _, at := range []time.Time{r.Entered[task.Open], r.Started, r.Ended} {
			if !at.IsZero() && at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
	}
	if t.State == task.Running || t.State == task.Open {
		last = now
	}
	width := max(last.Sub(first), time.Millisecond)
	place := func(from, to time.Time) (x, w int) {
		x = int(1000 * from.Sub(first) / width)
		return x, max(2, int(1000*to.Sub(first)/width)-x)
	}
	for i := range rounds {
		row := roundRow{Round: &rounds[i], Y: 14 * i}
		row.Ending, row.Class = endingOf(t, row.Round)
		end := row.Ended
		if end.IsZero() {
			end = last
		}
		if opened := row.Entered[task.Open]; !opened.IsZero() {
			begun := row.Started
			if begun.IsZero() {
				begun = end
			}
			row.Waited, row.HasWaited = max(0, begun.Sub(opened)), true
			row.WaitX, row.WaitW = place(opened, begun)
		}
		if row.HasRun = !row.Started.IsZero(); row.HasRun {
			row.RunX, row.RunW = place(row.Started, end)
		}
		rows = append(rows, row)
	}
	return rows
}

// endingOf says how a round ended, and returns the class of its bar.
func endingOf(t *manager.Task, r *manager.Round) (text, class string) {
	switch {
	case !r.Lost.IsZero():
		return "the worker was lost", string(task.Failed)
	case !r.TimedOut.IsZero():
		return "timed out", string(task.TimedOut)
	case !r.Failed.IsZero():
		return string(task.Failed), string(task.Failed)
	}
	if r.Number == t.Round {
		return string(t.State), outcomeClass(t)
	}
	for _, state := range []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Expired} {
		if !r.Entered[state].IsZero() {
			return string(state), string(state)
		}
	}
	return "released", string(task.Expired)
}

func outcomeClass(t *manager.Task) string {
	if t.Outcome != "" {
		return t.Outcome
	}
	return string(t.State)
}

// streamsOf returns the outputs of a round that has any.
func streamsOf(t *manager.Task, r *manager.Round) (all []stream) {
	for _, s := range []struct {
		name, label, text string
		size              int64
	}{
		{"stdout", "Output (stdout)", r.Output, r.OutputBytes},
		{"stderr", "Errors (stderr)", r.Error, r.ErrorBytes},
		{"result", "Result", r.Result, int64(len(r.Result))},
	} {
		if s.text == "" {
			continue
		}
		raw := ""
		if t.Namespace == "" { // the API serves one namespace
			raw = fmt.Sprintf("%s/api/v1/tasks/%d/output?round=%d&stream=%s", Base, t.ID, r.Number, s.name)
		}
		all = append(all, stream{
			Name: s.name, Label: s.label, output: outputOf(s.text), Size: max(s.size, int64(len(s.text))),
			Whole: int64(len(s.text)) >= s.size,
			Raw:   raw,
		})
	}
	return all
}

// An explanation is what the page shows that explains a task.
type explanation struct {
	*admin.Explanation
	Name string
}

// Title returns the title of the page.
func (e explanation) Title() string {
	if e.State.Finished() {
		return "Task " + e.Name + ", explained"
	}
	return "Why task " + e.Name + " does not run or finish"
}

func loadExplanation(ctx context.Context, v *visit) (any, error) {
	t, of, err := v.task(ctx)
	if err != nil {
		return nil, err
	}
	e, err := of.admin.Explain(ctx, t.ID)
	return explanation{&e, t.Name()}, err
}
