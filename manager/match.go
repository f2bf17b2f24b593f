package manager

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
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
		(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, outcome(t))) &&
		(q.Program == "" || program)
}

// outcome is told by the state of a task that a component of the original TDF has judged.
func outcome(t *tdf.Task) string {
	if t.Outcome == "" && t.State.Settled() {
		return string(t.State)
	}
	return t.Outcome
}

// facts says the same as far as all but texts goes.
func (q *Query) facts(t *tdf.Task) bool {
	entered := t.Current().Entered[t.State]
	r := t.Rounds.At(t.LastRun())
	return entered >= q.After && (q.Before == 0 || entered < q.Before) &&
		(q.Worker == "" || r.Worker == q.Worker) &&
		(q.Exit == "" || r.Exit == q.Exit || q.Exit == anySignal && strings.HasPrefix(r.Exit, anySignal)) &&
		(q.Failure == "" || lastFailure(t) != nil)
}

const anySignal = "signal"

// A textOf is a text of a task: of one of its rounds, or, with the round -1, of itself.
type textOf struct {
	round int
	what  string
}

func (x textOf) name() string {
	if x.round < 0 {
		return x.what
	}
	return tdf.RoundField(x.round, x.what)
}

// put takes the text into the task.
func (x textOf) put(t *tdf.Task, text string) {
	r := t.Rounds.At(x.round)
	if x.round >= 0 && t.Rounds[x.round] == nil { // it may have texts without facts
		r.Unread = tdf.TextOutput | tdf.TextError | tdf.TextResult | tdf.TextTail
		t.Rounds[x.round] = r
	}
	switch x.what {
	case "input":
		t.Input, t.Unread = text, t.Unread&^tdf.TextInput
	case "meta":
		t.Meta, t.Unread = text, t.Unread&^tdf.TextMeta
	case tdf.RoundOutput:
		r.Output, r.Unread = text, r.Unread&^tdf.TextOutput
	case tdf.RoundError:
		r.Error, r.HasError, r.Unread = text, text != "", r.Unread&^tdf.TextError
	case tdf.RoundTail:
		r.Tail, r.Unread = text, r.Unread&^tdf.TextTail
	case "result":
		r.Result, r.Unread = text, r.Unread&^tdf.TextResult
	}
}

var ofTask = []textOf{{-1, "input"}, {-1, "meta"}}

// texts are those that a task has to be known with.
func (q *Query) texts(t *tdf.Task) []textOf { return append(slices.Clone(ofTask), q.searched(t)...) }

// searched are the texts that say whether a task is meant.
func (q *Query) searched(t *tdf.Task) []textOf {
	var texts []textOf
	if q.Output != "" {
		texts = append(texts, textOf{t.LastRun(), tdf.RoundOutput})
	}
	if q.Error != "" {
		texts = append(texts, textOf{t.LastRun(), tdf.RoundError})
	}
	if q.Failure != "" {
		texts = append(texts, textOf{lastFailure(t).round, tdf.RoundError})
	}
	return texts
}

// says says whether a task is meant as far as its texts go.
func (q *Query) says(t *tdf.Task) bool {
	r := t.Rounds.At(t.LastRun())
	return strings.Contains(r.Output, q.Output) && strings.Contains(r.Error, q.Error) &&
		(q.Failure == "" || strings.HasPrefix(lastFailure(t).signature().id(), q.Failure))
}
