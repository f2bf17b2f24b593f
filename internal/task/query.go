package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Query selects the tasks that meet all of its conditions. A field that is zero sets no condition, so the zero Query
// selects all tasks. The last run of a task is its current round or, if no worker has claimed that round, the round
// before.
type Query struct {
	IDs      []int64  `json:"ids,omitempty"`      // tasks with one of these ids
	States   []State  `json:"states,omitempty"`   // tasks in one of these states
	Group    string   `json:"group,omitempty"`    // tasks of this group
	Outcomes []string `json:"outcomes,omitempty"` // tasks with one of these outcomes
	// tasks of this queue; [DefaultQueue] means the tasks without a queue
	Queue   string `json:"queue,omitempty"`
	Owner   string `json:"owner,omitempty"`   // tasks that the token with this name has opened
	Program string `json:"program,omitempty"` // tasks of this program; * and ? are wildcards as in path.Match
	Worker  string `json:"worker,omitempty"`  // tasks whose last run was on this worker
	// tasks whose last run ended like this: "0" to "255", "signal: killed", or "signal" for any signal
	Exit string `json:"exit,omitempty"`
	// tasks with all of these parameters, as NAME=VALUE; the value is the text that the program got
	Params []string  `json:"params,omitempty"`
	Input  string    `json:"input,omitempty"`  // tasks whose input contains this text
	Since  time.Time `json:"since,omitzero"`   // tasks that entered their state at this time or later
	Before time.Time `json:"before,omitzero"`  // tasks that entered their state before this time
	Output string    `json:"output,omitempty"` // tasks whose last run printed this text to stdout
	Error  string    `json:"error,omitempty"`  // tasks whose last run printed this text to stderr
	// tasks whose last failure belongs to this failure group, given by its id or the beginning of its id
	Failure string `json:"failure,omitempty"`

	// FailureBy chooses the line of stderr by which failures are grouped, and so what Failure means: "" for the most
	// informative line (docs/tdf.md, "Watching and reading tasks"), ByFirstLine, ByLastLine, or a regular expression
	// whose first match, or the first group in it, is the line.
	FailureBy string `json:"failure_by,omitempty"`

	// CallbackFailed selects tasks whose callbacks have failed for good (docs/manager.md, "Callbacks that fail"): the
	// 10,000 oldest such failures.
	CallbackFailed bool `json:"callback_failed,omitempty"`

	Order Order `json:"order,omitempty"`
	Read  Read  `json:"read,omitempty"`
}

// An Order is the order in which a query returns tasks. It sorts tasks of a group by their ids, and open tasks by the
// times at which they become claimable. It sorts all other tasks by the times at which they entered their states. Tasks
// that Query.IDs selects keep the order of Query.IDs.
type Order string

// The orders. ByID sorts by ascending id, for any query; only manager.Manager.List supports it.
const (
	NewestFirst Order = ""
	OldestFirst Order = "oldest_first"
	ByID        Order = "by_id"
)

// Read selects which texts of the last run are read. All other fields of a summary are always read.
type Read string

// The values of Read. Each value includes the texts of the values above it.
const (
	ReadSummary Read = ""       // only the texts that the Query searches
	ReadResult  Read = "result" // also the result
	ReadOutput  Read = "output" // also stdout and stderr
)

// A QueryError is the reason why a [Query] or its cursor is invalid.
type QueryError struct{ Problem string }

func (e *QueryError) Error() string { return e.Problem }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*QueryError) Code() Code { return CodeInvalid }

// AnySignal is the Exit of a [Query] that selects rounds which a signal ended. The Exit of such a round begins with it.
const AnySignal = "signal"

// FailureIDLength is the number of hex digits in the id of a failure group.
const FailureIDLength = 8

// Values of [Query].FailureBy.
const (
	ByFirstLine = "first-line"
	ByLastLine  = "last-line"
)

// maxConditions is the largest number of states, outcomes and parameters in a query, which are compared with each task.
const maxConditions = 1000

// Validate checks a query, without Redis. If it is invalid, Validate returns a *[QueryError].
func (q *Query) Validate() error {
	if problem := q.problem(); problem != "" {
		return &QueryError{problem}
	}
	return nil
}

func (q *Query) problem() string {
	if reason := wrongGlob(q.Program); reason != "" {
		return fmt.Sprintf("invalid pattern %.200q for the program: it %s", q.Program, reason)
	}
	if n := len(q.States) + len(q.Outcomes) + len(q.Params); n > maxConditions {
		return fmt.Sprintf("%d states, outcomes and parameters; at most %d are possible", n, maxConditions)
	}
	if n, err := strconv.ParseUint(q.Exit, 10, 8); q.Exit != "" && !strings.HasPrefix(q.Exit, AnySignal) &&
		(err != nil || strconv.Itoa(int(n)) != q.Exit) {
		return fmt.Sprintf("invalid exit status %q: want 0 to 255, signal, or a signal such as 'signal: killed'",
			q.Exit)
	}
	for _, p := range q.Params {
		if i := strings.IndexByte(p, '='); i < 1 {
			return fmt.Sprintf("invalid parameter %.200q: want NAME=VALUE", p)
		}
	}
	if strings.Trim(q.Failure, "0123456789abcdef") != "" || len(q.Failure) > FailureIDLength {
		return fmt.Sprintf("invalid failure group %q: want the group's ID of 8 hex digits, or the first digits of it",
			q.Failure)
	}
	if _, err := ParseRegexp(q.FailureBy); err != nil {
		return fmt.Sprintf("invalid rule %.200q for failure groups: want %s, %s or a regular expression; %v",
			q.FailureBy, ByFirstLine, ByLastLine, err)
	}
	if q.Queue != "" {
		if err := CheckLabel("queue", q.Queue); err != nil {
			return err.Error()
		}
	}
	for _, s := range q.States {
		if !slices.Contains(States, s) {
			return fmt.Sprintf("unknown state %q", s)
		}
	}
	if !slices.Contains([]Order{NewestFirst, OldestFirst, ByID}, q.Order) {
		return fmt.Sprintf("unknown order %.40q: want %s or %s, or no order for the newest tasks first", q.Order,
			OldestFirst, ByID)
	}
	if !slices.Contains([]Read{ReadSummary, ReadResult, ReadOutput}, q.Read) {
		return fmt.Sprintf("unknown texts to read %.40q: want %s or %s, or nothing for a summary", q.Read, ReadResult,
			ReadOutput)
	}
	return ""
}
