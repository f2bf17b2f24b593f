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

// A QueryError says what makes no sense about a [Query], or about where it is to go on.
type QueryError struct{ Problem string }

func (e *QueryError) Error() string { return e.Problem }

// prepared returns the query with its defaults, or what is wrong with it.
func (q Query) prepared() (Query, error) {
	if _, err := path.Match(q.Program, ""); err != nil {
		return q, &QueryError{fmt.Sprintf("the program %q is no pattern: * and ? stand for characters, and a [ needs its ]", q.Program)}
	}
	if n, err := strconv.ParseUint(q.Exit, 10, 8); q.Exit != "" && !strings.HasPrefix(q.Exit, anySignal) && (err != nil || strconv.Itoa(int(n)) != q.Exit) {
		return q, &QueryError{fmt.Sprintf("the exit status %q is none of 0 to 255, signal, 'signal: killed' and the like", q.Exit)}
	}
	if strings.Trim(q.Failure, "0123456789abcdef") != "" || len(q.Failure) > failureIDLength {
		return q, &QueryError{fmt.Sprintf("%q is not the ID of a group of failures, nor the beginning of one: 8 hex digits", q.Failure)}
	}
	for _, s := range q.States {
		if !slices.Contains(tdf.States, s) {
			return q, &QueryError{fmt.Sprintf("there is no state %q", s)}
		}
	}
	q.States = q.states()
	if !slices.IsSortedFunc(q.IDs, ascending) {
		q.IDs = firstOnes(q.IDs)
	}
	return q, nil
}

// ascending makes equal ids count as not in order.
func ascending(a, b int64) int {
	if a > b {
		return 1
	}
	return -1
}

// firstOnes leaves out what was there already.
func firstOnes(ids []int64) []int64 {
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

// states are those that the tasks meant can be in, each once, in the order of a task's life.
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

// head says whether a task can be meant as far as its state, round, program, group and outcome go.
func (q *Query) head(t *tdf.Task) bool {
	program, _ := path.Match(q.Program, t.Program)
	return slices.Contains(q.States, t.State) &&
		(q.Group == "" || t.Group == q.Group) &&
		(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, Outcome(t))) &&
		(q.Program == "" || program)
}

// facts says the same as far as all but texts goes.
func (q *Query) facts(t *tdf.Task) bool {
	entered := t.Current().Entered[t.State]
	r := t.Rounds.At(t.LastRun())
	return entered >= q.After && (q.Before == 0 || entered < q.Before) &&
		(q.Worker == "" || r.Worker == q.Worker) &&
		(q.Exit == "" || r.Exit == q.Exit || q.Exit == anySignal && strings.HasPrefix(r.Exit, anySignal)) &&
		(q.Failure == "" || LastFailure(t) != nil)
}

const anySignal = "signal"

// OfTask are the texts of a task itself that every selected task is read with.
var OfTask = redisstate.TextsOf{Round: redisstate.OfTask, Texts: tdf.TextInput | tdf.TextMeta}

// texts returns the texts that a selected task is read with.
func (q *Query) texts(t *tdf.Task) []redisstate.TextsOf {
	return append([]redisstate.TextsOf{OfTask}, q.Searched(t)...)
}

// Searched returns the texts in which the query looks for a text.
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

// says says whether a task is meant as far as its texts go.
func (q *Query) says(t *tdf.Task) bool {
	r := t.Rounds.At(t.LastRun())
	return strings.Contains(r.Output, q.Output) && strings.Contains(r.Error, q.Error) &&
		(q.Failure == "" || strings.HasPrefix(LastFailure(t).Fingerprint().ID(), q.Failure))
}

// Literal returns a pattern for Query.Program that matches only the name itself.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}
