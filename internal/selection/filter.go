package selection

import (
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Filter selects tasks by texts. An empty text sets no condition. The fields mean the same as those of a
// [task.Query].
type Filter struct {
	IDs                          []string // ids and ranges such as 12-40
	States, Outcomes             []string
	Group, Queue, Owner, Program string
	Worker, Exit, Output, Error  string
	Failure, FailureBy           string
	Callback                     string   // "failed": tasks whose callbacks have failed for good
	Params                       []string // each is NAME=VALUE
	Input                        string
	OlderThan, NewerThan         string // spans: the least and the longest time that a task has been in its state
}

// CallbackFailed is the only Callback of a Filter besides "".
const CallbackFailed = "failed"

// Empty reports whether the filter sets no condition.
func (f *Filter) Empty() bool {
	return len(f.IDs)+len(f.States)+len(f.Outcomes)+len(f.Params) == 0 &&
		f.Group+f.Queue+f.Owner+f.Program+f.Worker+f.Exit+f.Input+f.Output+f.Error+f.Failure+f.Callback == "" &&
		!f.NeedsClock()
}

// NeedsClock reports whether the query depends on the time. If not, Query ignores it.
func (f *Filter) NeedsClock() bool { return f.OlderThan+f.NewerThan != "" }

// Query returns the query at a time of Redis's clock. The error is an *[Error]. To check the other conditions, too, use
// [task.Query.Validate].
func (f *Filter) Query(now time.Time) (task.Query, error) {
	q := task.Query{
		Group: f.Group, Outcomes: f.Outcomes, Queue: f.Queue, Owner: f.Owner, Program: f.Program, Worker: f.Worker,
		Exit: f.Exit, Params: f.Params, Input: f.Input,
		Output: f.Output, Error: f.Error, Failure: f.Failure, FailureBy: f.FailureBy,
	}
	if f.Callback != "" && f.Callback != CallbackFailed {
		return q, &Error{"callback", f.Callback, CallbackFailed}
	}
	q.CallbackFailed = f.Callback != ""
	var err error
	if q.IDs, err = IDs(f.IDs); err != nil {
		return q, err
	}
	if err := oneOf("state", f.States, States()); err != nil {
		return q, err
	}
	for _, s := range f.States {
		q.States = append(q.States, task.State(s))
	}
	if err := oneOf("outcome", f.Outcomes, Outcomes()); err != nil {
		return q, err
	}
	q.Before, err = before(now, "older_than", f.OlderThan)
	if err != nil {
		return q, err
	}
	q.Since, err = before(now, "newer_than", f.NewerThan)
	return q, err
}

// before returns the time that is a span before now. For an empty text, it returns the zero time.
func before(now time.Time, of, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	span, err := Span(text)
	if err != nil || span == task.Forever {
		return time.Time{}, &Error{of, text, "seconds, or a span such as 90s or 2h30m"}
	}
	return now.Add(-span.Std()), nil
}
