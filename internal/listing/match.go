package listing

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A QueryError is the reason why a [Query] or its cursor is invalid.
type QueryError struct{ Problem string }

func (e *QueryError) Error() string { return e.Problem }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*QueryError) Code() tdf.Code { return tdf.CodeInvalid }

// prepare returns the query with its defaults, or a *[QueryError].
func (q Query) prepare() (Query, error) {
	if _, err := path.Match(q.Program, ""); err != nil {
		return q, &QueryError{fmt.Sprintf("invalid pattern %q for the program: * and ? are wildcards, and each [ needs a ]", q.Program)}
	}
	if n, err := strconv.ParseUint(q.Exit, 10, 8); q.Exit != "" && !strings.HasPrefix(q.Exit, anySignal) && (err != nil || strconv.Itoa(int(n)) != q.Exit) {
		return q, &QueryError{fmt.Sprintf("invalid exit status %q: want 0 to 255, signal, or a signal such as 'signal: killed'", q.Exit)}
	}
	if strings.Trim(q.Failure, "0123456789abcdef") != "" || len(q.Failure) > failureIDLength {
		return q, &QueryError{fmt.Sprintf("invalid failure group %q: want the group's ID of 8 hex digits, or the first digits of it", q.Failure)}
	}
	if q.Queue != "" {
		if err := tdf.CheckLabel("queue", q.Queue); err != nil {
			return q, &QueryError{err.Error()}
		}
	}
	for _, s := range q.States {
		if !slices.Contains(tdf.States, s) {
			return q, &QueryError{fmt.Sprintf("unknown state %q", s)}
		}
	}
	q.States = q.states()
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
func (q *Query) states() []tdf.State {
	return slices.DeleteFunc(slices.Clone(tdf.States), func(s tdf.State) bool {
		return len(q.States) > 0 && !slices.Contains(q.States, s) || len(q.Outcomes) > 0 && !q.endsIn(s)
	})
}

func (q *Query) endsIn(s tdf.State) bool {
	return s == tdf.Archived || slices.ContainsFunc(q.Outcomes, func(outcome string) bool {
		return outcome == string(s) || outcome == tdf.Cancelled && s == tdf.Expired
	})
}

// head reports whether a task meets the conditions on state, program, group and outcome.
func (q *Query) head(t *tdf.Task) bool {
	program, _ := path.Match(q.Program, t.Program)
	return slices.Contains(q.States, t.State) &&
		(q.Group == "" || t.Group == q.Group) &&
		(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, Outcome(t))) &&
		(q.Program == "" || program)
}

// facts reports whether a task meets the conditions that the method head does not check, except the conditions on
// texts.
func (q *Query) facts(t *tdf.Task) bool {
	entered := t.Current().Entered[t.State]
	r := t.Rounds.At(t.LastRun())
	return entered >= q.After && (q.Before == 0 || entered < q.Before) &&
		(q.Queue == "" || t.Partition().Queue == q.Queue) &&
		(q.Worker == "" || r.Worker == q.Worker) &&
		(q.Exit == "" || r.Exit == q.Exit || q.Exit == anySignal && strings.HasPrefix(r.Exit, anySignal)) &&
		(q.Failure == "" || LastFailure(t) != nil)
}

const anySignal = "signal"

// OfTask selects the input and the meta of a task, which are read for every selected task.
var OfTask = redisstate.TextsOf{Round: redisstate.OfTask, Texts: tdf.TextInput | tdf.TextMeta}

// texts returns which texts of a selected task must be read.
func (q *Query) texts(t *tdf.Task) []redisstate.TextsOf {
	return append([]redisstate.TextsOf{OfTask}, q.Searched(t)...)
}

// Searched returns which texts of a task the query searches.
func (q *Query) Searched(t *tdf.Task) []redisstate.TextsOf {
	var texts []redisstate.TextsOf
	if q.Output != "" {
		texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextOutput})
	}
	if q.Error != "" {
		texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextError})
	}
	if q.Failure != "" {
		texts = append(texts, redisstate.TextsOf{Round: LastFailure(t).Round, Texts: tdf.TextError})
	}
	return texts
}

// textsMatch reports whether a task meets the conditions on its texts.
func (q *Query) textsMatch(t *tdf.Task) bool {
	r := t.Rounds.At(t.LastRun())
	return strings.Contains(r.Output, q.Output) && strings.Contains(r.Error, q.Error) &&
		(q.Failure == "" || strings.HasPrefix(LastFailure(t).Fingerprint().ID(), q.Failure))
}

// Literal returns a pattern for Query.Program that matches only the given name.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}
