package listing

import (
	"path"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/sweep"
)

// prepare returns the query with its defaults, or a *[task.QueryError].
func prepare(q task.Query) (task.Query, error) {
	if err := q.Validate(); err != nil {
		return q, err
	}
	q.States = states(&q)
	if !slices.IsSortedFunc(q.IDs, compareIDs) {
		q.IDs = withoutRepeats(q.IDs)
	}
	return q, nil
}

// compareIDs compares two ids. It returns -1 for equal ids too, so that IsSortedFunc rejects duplicates.
func compareIDs(a, b int64) int {
	if a > b {
		return 1
	}
	return -1
}

// withoutRepeats keeps only the first occurrence of each id.
func withoutRepeats(ids []int64) []int64 {
	seen := make(map[int64]bool, len(ids))
	var first []int64
	for _, id := range ids {
		if !seen[id] {
			first = append(first, id)
		}
		seen[id] = true
	}
	return first
}

// states returns the states that selected tasks can have, without duplicates, in the order of a task's life.
func states(q *task.Query) []task.State {
	return slices.DeleteFunc(slices.Clone(task.States), func(s task.State) bool {
		return len(q.States) > 0 && !slices.Contains(q.States, s) || len(q.Outcomes) > 0 && !endsIn(q, s)
	})
}

func endsIn(q *task.Query, s task.State) bool {
	return s == task.Archived || slices.ContainsFunc(q.Outcomes, func(outcome string) bool {
		return outcome == string(s) || outcome == task.Cancelled && s == task.Expired
	})
}

// head reports whether a task meets the conditions on state, program, group, owner and outcome.
func head(q *task.Query, t *task.Task) bool {
	program, _ := path.Match(q.Program, t.Program)
	return slices.Contains(q.States, t.State) &&
		(q.Group == "" || t.Group == q.Group) &&
		(q.Owner == "" || t.Owner == q.Owner) &&
		(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, Outcome(t))) &&
		(q.Program == "" || program)
}

// facts reports whether a task meets the conditions that the function head does not check, except the conditions on
// texts.
func facts(q *task.Query, t *task.Task) bool {
	entered := t.Current().Entered[t.State]
	r := t.Rounds.At(t.LastRun())
	return entered >= task.At(q.Since) && (q.Before.IsZero() || entered < task.At(q.Before)) &&
		(q.Queue == "" || t.Requirement().Queue == q.Queue) &&
		(q.Worker == "" || r.Worker == q.Worker) &&
		(q.Exit == "" || r.Exit == q.Exit || q.Exit == task.AnySignal && strings.HasPrefix(r.Exit, task.AnySignal)) &&
		(q.Failure == "" || LastFailure(t) != nil)
}

// OfTask selects the input and the meta of a task, which are read for every selected task.
var OfTask = redisstate.TextsOf{Round: redisstate.OfTask, Texts: task.TextInput | task.TextMeta}

// texts returns which texts of a selected task must be read.
func texts(q *task.Query, t *task.Task) []redisstate.TextsOf {
	return append([]redisstate.TextsOf{OfTask}, Searched(q, t)...)
}

// Searched returns which texts of a task a query searches.
func Searched(q *task.Query, t *task.Task) []redisstate.TextsOf {
	var texts []redisstate.TextsOf
	if q.Input != "" || len(q.Params) > 0 {
		texts = append(texts, OfTask)
	}
	if q.Output != "" {
		texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: task.TextOutput})
	}
	if q.Error != "" {
		texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: task.TextError})
	}
	if q.Failure != "" {
		texts = append(texts, redisstate.TextsOf{Round: LastFailure(t).Round, Texts: task.TextError})
	}
	return texts
}

// textsMatch reports whether a task meets the conditions on its texts.
func textsMatch(q *task.Query, t *task.Task) bool {
	r := t.Rounds.At(t.LastRun())
	return strings.Contains(t.Label(), q.Input) && (len(q.Params) == 0 || sweep.HasParams(t.Meta, q.Params)) &&
		strings.Contains(r.Output, q.Output) && strings.Contains(r.Error, q.Error) &&
		(q.Failure == "" || strings.HasPrefix(LastFailure(t).Fingerprint(q.FailureBy).ID(), q.Failure))
}

// Literal returns a pattern for the Program of a query that matches only the given name.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}
