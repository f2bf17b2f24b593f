package manager

import (
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

// A Task is a task as it was when it was read. Its Definition has the task's own values in all fields, so it can be changed and
// opened again.
//
// [Manager.List] and [Manager.Page] read summaries: all fields but Log and Checkpoint, and only the last two rounds. The texts of
// rounds are read as [Query].Read says.
type Task struct {
	ID int64 `json:"id"`
	Definition

	State   tdf.State `json:"state"`
	Outcome string    `json:"outcome,omitempty"` // succeeded, failed, timed_out, expired or cancelled; "": not finished. Archived tasks keep it.
	Round   int       `json:"round"`             // the number of the current round; the first is 0

	Entered time.Time `json:"entered,omitzero"` // when the task entered its state
	Opened  time.Time `json:"opened,omitzero"`

	// How many rounds failed, timed out, were lost and were released, how often the task was retried, and how often it was changed.
	Fails    int `json:"fails" only:"whole"`
	Timeouts int `json:"timeouts" only:"whole"`
	Losses   int `json:"losses" only:"whole"`
	Releases int `json:"releases" only:"whole"`
	Reopens  int `json:"reopens" only:"whole"`
	Revision int `json:"revision" only:"whole"`

	NotOn      []string `json:"not_on,omitempty" only:"whole"`     // workers that must not run the task
	Checkpoint string   `json:"checkpoint,omitempty" only:"whole"` // what the program left for its next round

	// Of a running task: when the round times out or the task expires, and until when the worker's claim holds.
	Deadline   time.Time `json:"deadline,omitzero" only:"running"`
	LeaseUntil time.Time `json:"lease_until,omitzero" only:"running"`

	Rounds []Round  `json:"rounds" only:"whole"` // in their order; without rounds that left nothing in Redis
	Log    []string `json:"log" only:"whole"`    // a line for each transition: when, who, what

	task   *tdf.Task
	whole  bool     // the task is no summary
	hidden []string // texts that JSON leaves out: the query did not ask for them, but may have searched them
}

// A Round is one try of a task.
type Round struct {
	Number int `json:"round"` // the first is 0

	// Entered says when the task entered its states in this round. TimedOut, Failed and Lost say when the round ended in one of these
	// ways; they are zero otherwise.
	Entered  map[tdf.State]time.Time `json:"entered,omitempty"`
	TimedOut time.Time               `json:"-"`
	Failed   time.Time               `json:"-"`
	Lost     time.Time               `json:"-"`

	Worker        string        `json:"worker,omitempty"` // "": no worker claimed the round
	Started       time.Time     `json:"started,omitzero"` // when the program started, or else when the worker claimed the task
	Ended         time.Time     `json:"ended,omitzero"`   // zero: the round has not ended
	Exit          string        `json:"exit,omitempty"`   // "0" to "255", or such as "signal: killed"; "": unknown
	RunTime       time.Duration `json:"seconds,omitempty"`
	CPUTime       time.Duration `json:"cpu_seconds,omitempty"` // of the program and its children
	MaxRSS        int64         `json:"max_rss,omitempty"`     // the most memory in use, in bytes
	ProgramSHA256 string        `json:"program_sha256,omitempty"`

	// Progress is what the program reported last.
	Progress *Progress `json:"progress,omitempty"`

	Result string `json:"-"`                // the content of result.json, which is JSON
	Output string `json:"output,omitempty"` // stdout
	Error  string `json:"error,omitempty"`  // stderr, or why the program could not run
	Tail   string `json:"tail,omitempty"`   // while the program runs: the last 4 KiB that it printed, as of the last renewal of the lease

	// How many bytes the program printed. Output and Error may be cut.
	OutputBytes int64 `json:"-"`
	ErrorBytes  int64 `json:"-"`

	PID        int       `json:"-"` // the process id of run.sh on its worker's host; 0: unknown
	LastOutput time.Time `json:"-"` // when the program printed something last, as of the last renewal of the lease

	unread tdf.Texts
}

// A Progress is what a program reports about itself.
type Progress struct {
	Fraction float64 `json:"fraction"` // from 0 to 1
	Text     string  `json:"text,omitempty"`
}

// OutputWhole reports whether Output is all that the program printed to stdout.
func (r *Round) OutputWhole() bool { return int64(len(r.Output)) >= r.OutputBytes }

// ErrorWhole reports whether Error has all that the program printed to stderr.
func (r *Round) ErrorWhole() bool { return int64(len(r.Error)) >= r.ErrorBytes }

// LastRun returns the last round that ran: the current one, unless it has not run; then the one before. It is nil if the task never
// ran.
func (t *Task) LastRun() *Round {
	if r := t.RoundNumber(t.task.LastRun()); r != nil && r.Worker != "" {
		return r
	}
	return nil
}

// RoundNumber returns the round with a number. It is nil if the round left nothing in Redis, or was not read.
func (t *Task) RoundNumber(n int) *Round {
	for i := range t.Rounds {
		if t.Rounds[i].Number == n {
			return &t.Rounds[i]
		}
	}
	return nil
}

// Output returns what the last run printed to stdout. It panics if the task was read without it.
func (t *Task) Output() string { return t.task.LastOutput() }

// Error returns what the last run printed to stderr, or why it could not run. It panics if the task was read without it.
func (t *Task) Error() string { return t.task.LastError() }

// Result returns the JSON that the last run left in result.json. It panics if the task was read without it.
func (t *Task) Result() string { return t.task.LastResult() }

// newTask returns the view of a task.
func newTask(t *tdf.Task, whole bool) *Task {
	v := &Task{
		ID: t.ID, Definition: definitionOf(t.Properties), State: t.State, Outcome: t.Outcome, Round: t.Round,
		Entered: stdtime.Time(t.Current().Entered[t.State]), Opened: stdtime.Time(t.Rounds.At(0).Entered[tdf.Open]),
		Fails: t.Fails, Timeouts: t.Timeouts, Losses: t.Losses, Releases: t.Releases, Reopens: t.Reopens, Revision: t.Revision,
		NotOn: t.NotOn, Checkpoint: t.Checkpoint, Log: lines(t.Log), task: t, whole: whole,
	}
	if t.State == tdf.Running {
		v.Deadline, v.LeaseUntil = stdtime.Time(t.Deadline), stdtime.Time(t.LeaseUntil)
	}
	for n, r := range t.Rounds.All() {
		v.Rounds = append(v.Rounds, newRound(t, n, r))
	}
	return v
}

func newRound(t *tdf.Task, n int, r *tdf.Round) Round {
	v := Round{
		Number: n, TimedOut: stdtime.Time(r.TimedOutAt), Failed: stdtime.Time(r.FailedAt), Lost: stdtime.Time(r.LostAt),
		Worker: r.Worker, Started: stdtime.Time(max(r.Started, r.Entered[tdf.Running])), Ended: stdtime.Time(ended(t, n)), Exit: r.Exit,
		RunTime: stdtime.Duration(r.Seconds), CPUTime: stdtime.Duration(r.CPUSeconds), MaxRSS: r.MaxRSS, ProgramSHA256: r.ProgramSHA256,
		Result: r.Result, Output: r.Output, Error: r.Error, Tail: r.Tail, OutputBytes: r.OutputBytes, ErrorBytes: r.ErrorBytes,
		PID: r.PID, LastOutput: stdtime.Time(r.LastOutput), unread: r.Unread,
	}
	if r.Progress != (tdf.Progress{}) {
		v.Progress = &Progress{r.Progress.Fraction, r.Progress.Text}
	}
	if len(r.Entered) > 0 {
		v.Entered = make(map[tdf.State]time.Time, len(r.Entered))
	}
	for state, at := range r.Entered {
		v.Entered[state] = stdtime.Time(at)
	}
	return v
}

// ended returns when a round ended; 0: it has not.
func ended(t *tdf.Task, n int) tdf.Time {
	r := t.Rounds.At(n)
	switch {
	case r.Entered[tdf.Executed] > 0:
		return r.Entered[tdf.Executed]
	case r.TimedOutAt+r.LostAt > 0:
		return max(r.TimedOutAt, r.LostAt)
	case n < t.Round: // it was released
		return t.Rounds.At(n + 1).Entered[tdf.Open]
	}
	return max(r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}
