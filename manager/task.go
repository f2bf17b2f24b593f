package manager

import (
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Task is a task at the time when it was read. All fields of its Definition are set, so that you can change the
// Definition and open a new task with it.
//
// [Manager.List] and [Manager.Page] read summaries. A summary lacks After, AfterAny, Log and Checkpoint, and contains
// only the last two rounds. The field Read of the [Query] selects which texts of these rounds the summary contains.
type Task struct {
	ID int64 `json:"id"`
	// Namespace is set only if several namespaces work as one (docs/shards.md).
	Namespace  string `json:"namespace,omitempty"`
	Definition `json:"-"`

	State tdf.State `json:"state"`
	// succeeded, failed, timed_out, expired or cancelled; "" if the task is not finished. Archived tasks keep their
	// outcome.
	Outcome string `json:"outcome,omitempty"`
	Waits   bool   `json:"waits,omitempty"` // the task is open and waits for its dependencies
	Round   int    `json:"round"`           // the number of the current round; the first is 0

	// WaitsForLimit is true if the task is open and waits because of the limit of its LimitKey.
	WaitsForLimit bool `json:"waits_for_limit,omitempty"`
	// ClaimableFrom is the time from which workers may claim an open task: the later one of its StartAfter, the end of
	// its back-off, and the time when it became open. It is zero if the task is not open, or waits for its
	// dependencies.
	ClaimableFrom time.Time `json:"claimable_from,omitzero"`

	Entered time.Time `json:"entered,omitzero"` // when the task entered its state
	Opened  time.Time `json:"opened,omitzero"`

	// Fails, Timeouts, Losses and Releases count rounds that failed, timed out, were lost or were released. Reopens
	// counts retries. Revision counts changes.
	Fails    int `json:"fails" only:"whole"`
	Timeouts int `json:"timeouts" only:"whole"`
	Losses   int `json:"losses" only:"whole"`
	Releases int `json:"releases" only:"whole"`
	Reopens  int `json:"reopens" only:"whole"`
	Revision int `json:"revision" only:"whole"`

	// InputReplaced means that the input was changed and the meta was not, so the parameters in the meta are not those of
	// the input.
	InputReplaced bool `json:"input_replaced,omitempty"`

	NotOn      []string `json:"not_on,omitempty" only:"whole"`     // workers that must not run the task
	Checkpoint string   `json:"checkpoint,omitempty" only:"whole"` // data that the program saved for its next round

	// Deadline and LeaseUntil are set while the task runs. At the Deadline, the round times out or the task expires.
	// The worker's claim holds until LeaseUntil. Each renewal of the lease extends this time.
	Deadline   time.Time `json:"deadline,omitzero" only:"running"`
	LeaseUntil time.Time `json:"lease_until,omitzero" only:"running"`

	Rounds []Round `json:"rounds" only:"whole"` // in ascending order, without rounds that have no data in Redis
	// a line for each transition, with its time, its author and its description
	Log []string `json:"log" only:"whole"`

	// Existing is set by Open: the task already existed, and holds the Unique key of the definition.
	Existing bool `json:"-"`

	stored *task.Task
	opened *newTask // set instead of stored if the task was just opened
	whole  bool     // whether this is a whole task, not a summary
	hidden []string // names of members that the JSON omits, because the query did not request their texts
}

// A Round is one attempt at a task.
type Round struct {
	Number int `json:"round"` // the first is 0

	// Entered contains the times at which the task entered its states in this round. TimedOut, Failed or Lost is set if
	// the round ended in this way.
	Entered  map[tdf.State]time.Time `json:"entered,omitempty"`
	TimedOut time.Time               `json:"-"`
	Failed   time.Time               `json:"-"`
	Lost     time.Time               `json:"-"`

	Worker string `json:"worker,omitempty"` // "" if no worker claimed the round
	// when the program started; if unknown, when the worker claimed the task
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"` // zero if the round has not ended
	// "0" to "255", or a text such as "signal: killed"; "" if unknown
	Exit          string        `json:"exit,omitempty"`
	RunTime       time.Duration `json:"seconds,omitempty"`
	CPUTime       time.Duration `json:"cpu_seconds,omitempty"` // CPU time of the program and its children
	MaxRSS        int64         `json:"max_rss,omitempty"`     // maximum memory in use, in bytes
	ProgramSHA256 string        `json:"program_sha256,omitempty"`

	// FollowUps are the tasks that the result of the round, or the callback for it, has opened. Some may be removed.
	FollowUps task.IDRange `json:"follow_ups,omitzero"`

	// Files says how many files the round has brought back; nil if it has brought back none ([Manager.Files]).
	Files *task.Files `json:"files,omitempty"`

	// Progress is the last progress that the program reported.
	Progress *task.Progress `json:"progress,omitempty"`

	Result string `json:"-"`                // the content of result.json, which is a JSON value
	Output string `json:"output,omitempty"` // stdout
	Error  string `json:"error,omitempty"`  // stderr, or why the program could not run
	// while the program runs, the last 4 KiB that it printed, as of the last renewal of the lease
	Tail string `json:"tail,omitempty"`

	TailEnd task.TailEnd `json:"-"` // where Tail ends

	// OutputsRemoved is when the server removed Output, Error, Result and Tail, because of KeepOutputs. If it has
	// removed outputs of several rounds, this is the last time. It is zero if it has not removed the outputs of this
	// round.
	OutputsRemoved time.Time `json:"outputs_removed,omitzero"`

	// The numbers of bytes that the program printed. Output and Error may be shorter, because the worker cuts long
	// texts.
	OutputBytes int64 `json:"-"`
	ErrorBytes  int64 `json:"-"`

	LastOutput time.Time `json:"-"` // when the program last printed something, as of the last renewal of the lease

	unread task.Texts
}

// OutputWhole reports whether Output contains all that the program printed to stdout.
func (r *Round) OutputWhole() bool { return int64(len(r.Output)) >= r.OutputBytes }

// ErrorWhole reports whether Error contains all that the program printed to stderr.
func (r *Round) ErrorWhole() bool { return int64(len(r.Error)) >= r.ErrorBytes }

// Name returns the id as people write it: NAMESPACE/ID if several namespaces work as one, otherwise only the id.
func (t *Task) Name() string { return TaskName(t.Namespace, t.ID) }

// TaskName does the same as [Task.Name]. The namespace is "" if there is only one.
func TaskName(namespace string, id int64) string {
	name := strconv.FormatInt(id, 10)
	if namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// SplitTaskName splits the name of a task, or of a range of tasks such as NAMESPACE/12-40, into the namespace and the
// rest. The namespace is "" if there is none.
func SplitTaskName(name string) (namespace, ids string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// LastRun returns the last round that ran. This is the current round, or the previous round if the current round has
// not run. If the task never ran, LastRun returns nil.
func (t *Task) LastRun() *Round {
	if r := t.RoundNumber(t.Stored().LastRun()); r != nil && r.Worker != "" {
		return r
	}
	return nil
}

// RoundNumber returns the round with number n. If the round has no data in Redis, or was not read, RoundNumber returns
// nil.
func (t *Task) RoundNumber(n int) *Round {
	for i := range t.Rounds {
		if t.Rounds[i].Number == n {
			return &t.Rounds[i]
		}
	}
	return nil
}

// Output returns the stdout of the last run, or "" if the [Query] did not read it.
func (t *Task) Output() string { return t.Stored().LastOutput() }

// Stderr returns the stderr of the last run, or why the program could not run. It is "" if the [Query] did not read it.
func (t *Task) Stderr() string { return t.Stored().LastError() }

// Result returns the JSON that the last run wrote into result.json, or "" if the [Query] did not read it.
func (t *Task) Result() string { return t.Stored().LastResult() }

// Stored returns the task as it stands in Redis. The Stored of a summary lacks the same parts as the summary. Of a task
// that was just opened, each call returns a new copy. A Task that no Manager has returned has only its ID.
func (t *Task) Stored() *task.Task {
	switch {
	case t.stored != nil:
		return t.stored
	case t.opened != nil:
		return t.opened.stored()
	}
	return &task.Task{ID: t.ID}
}

// TaskOf returns the Task for a stored task, as [Task.Stored] returns it. If whole is false, the Task is a summary.
func TaskOf(t *task.Task, whole bool) *Task {
	v := &Task{
		ID: t.ID, State: t.State, Outcome: t.Outcome, Waits: t.Waits(), Round: t.Round,
		Entered: t.Current().Entered[t.State].Std(), Opened: t.Rounds.At(0).Entered[tdf.Open].Std(),
		Fails: t.Fails, Timeouts: t.Timeouts, Losses: t.Losses, Releases: t.Releases, Reopens: t.Reopens,
		Revision:      t.Revision,
		InputReplaced: t.InputReplaced, NotOn: t.NamesNotOn(), Checkpoint: t.Checkpoint, Log: lines(t.Log),
		stored: t, whole: whole,
	}
	t.Properties.Define(&v.Definition)
	v.WaitsForLimit = t.WaitsForLimit()
	if t.State == tdf.Open && !v.Waits {
		v.ClaimableFrom = t.ClaimableFrom().Std()
	}
	if t.State == tdf.Running {
		v.Deadline, v.LeaseUntil = t.Deadline.Std(), t.LeaseUntil.Std()
	}
	for n, r := range t.Rounds.All() {
		v.Rounds = append(v.Rounds, newRound(t, n, r))
	}
	return v
}

func newRound(t *task.Task, n int, r *task.Round) Round {
	v := Round{
		Number: n, TimedOut: r.TimedOutAt.Std(), Failed: r.FailedAt.Std(), Lost: r.LostAt.Std(),
		Worker: r.Worker, Started: max(r.Started, r.Entered[tdf.Running]).Std(), Ended: endOf(t, n).Std(), Exit: r.Exit,
		RunTime: r.Seconds.Std(), CPUTime: r.CPUSeconds.Std(), MaxRSS: r.MaxRSS, ProgramSHA256: r.ProgramSHA256,
		Result: r.Result, Output: r.Output, Error: r.Error, Tail: r.Tail, TailEnd: task.ParseTailEnd(r.TailEnd, r.Tail),
		OutputBytes: r.OutputBytes, ErrorBytes: r.ErrorBytes,
		LastOutput: r.LastOutput.Std(), FollowUps: r.FollowUps, unread: r.Unread,
	}
	if n < t.OutputsFrom {
		v.OutputsRemoved = t.OutputsRemoved.Std()
	}
	if r.Files != (task.Files{}) {
		v.Files = new(r.Files)
	}
	if r.Progress != (task.Progress{}) {
		v.Progress = new(r.Progress)
	}
	if len(r.Entered) > 0 {
		v.Entered = make(map[tdf.State]time.Time, len(r.Entered))
	}
	for state, at := range r.Entered {
		v.Entered[state] = at.Std()
	}
	return v
}

// endOf returns when a round ended, or 0 if the round has not ended.
func endOf(t *task.Task, n int) task.Time {
	r := t.Rounds.At(n)
	switch {
	case r.Entered[tdf.Executed] > 0:
		return r.Entered[tdf.Executed]
	case r.TimedOutAt+r.LostAt > 0:
		return max(r.TimedOutAt, r.LostAt)
	case n < t.Round: // the round was released
		return t.Rounds.At(n + 1).Entered[tdf.Open]
	}
	return max(r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}
