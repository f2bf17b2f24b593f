package task

import (
	"iter"
	"maps"
	"slices"
)

// A Task is a task with its properties, its state and its rounds.
type Task struct {
	Properties
	ID    int64
	State State

	// Namespace is set only by a reader of several namespaces that work as one (docs/shards.md).
	Namespace string

	Round int // number of the current round; the first is 0

	Fails, Timeouts, Losses, Releases, Reopens, Revision int // values of the task's counters ([Counter])

	// UnfitHosts is the number of rounds that were released because the worker's host could not run the program
	// (docs/lifecycle.md, "Released rounds").
	UnfitHosts int

	// NotOn says which workers must not run the task (docs/lifecycle.md, "By hand" and "Released rounds").
	NotOn []NotOn

	// Checkpoint is the data that the program saved for its next round (docs/programs.md, "The round's directory").
	Checkpoint string

	// Made are the blobs that the last round with a result has made (docs/blobs.md).
	Made []Blob

	// InputReplaced means that the input was changed and the meta was not, so the parameters in the meta are not those of
	// the input. A change of the meta ends this.
	InputReplaced bool

	// OutputsFrom is the first round whose outputs were not removed by keep_outputs. OutputsRemoved is when the server
	// last removed outputs; 0 if it never did (docs/lifecycle.md, "Retention").
	OutputsFrom    int
	OutputsRemoved Time

	// Outcome is how a finished task ended: succeeded, failed, timed_out, expired or cancelled. Archiving keeps the
	// outcome. It is "" if the task is not finished.
	Outcome string
	Log     string // one line per transition: time, component or user, transition

	Ready Time // score in the open list; 0 if the score is StartAfter or the time when the task became open
	// when the current round times out or expires; later than EndBefore only after the end of the program; 0 without a
	// claim
	Deadline   Time
	LeaseUntil Time // end of the current claim's lease; 0 without a claim

	// Lease is the length of the current claim's lease: LeaseUntil is never later than now and Lease, unless Redis's
	// clock was set back. It is 0 without a claim.
	Lease Seconds

	// PlacedIn is the place that Redis stores for the task. It differs from [Properties.Place] if another program
	// changed it.
	PlacedIn string

	// Links is the number of the task's dependencies, also if they were not read. HasLinks reports whether it has
	// dependencies, or other tasks have waited for it.
	Links    int
	HasLinks bool

	// Dependents is the number of unfinished tasks that wait for the task, or may still read its outputs.
	Dependents int

	// Rounds holds the current round and the earlier rounds that were read. If the server has read the task to settle
	// it, the earlier rounds contain only Worker and LostAt.
	Rounds Rounds

	// Unread lists the texts of the task that were not read. Their fields are empty. If the whole task was read, Unread
	// is 0.
	Unread Texts
}

// Cancelled is the outcome of a task that a user cancelled. The state of the task is expired.
const Cancelled = "cancelled"

// A Round is one round of a task, from its opening to its end.
type Round struct {
	Entered    map[State]Time // when the task entered each state in this round
	TimedOutAt Time           // when the round timed out; 0 if it did not
	FailedAt   Time           // when the server settled the round as failed; 0 if it did not fail
	LostAt     Time           // when the server settled the round as lost; 0 if it was not lost
	// when the program began; set only if the worker had to fetch the program first, otherwise 0
	Started Time

	Worker string // name of the worker that claimed the round; "" if no worker did
	// Prefetched means that the worker may have claimed the round before it had a free slot.
	Prefetched bool
	Claim      string // random id of the claim; "" if there is no claim, or if a worker of the original TDF made it

	Output   string // stdout, byte for byte
	Error    string // stderr, byte for byte, or the reason why the program could not be run
	HasError bool   // whether the error text is not empty; valid even if Error was not read
	Exit     string // "0" to "255", or "signal: killed"; "" if unknown, or if the program could not be run

	// Permanent means that the worker expects every later round to fail, too. If this round has failed, the task gets
	// no other round, whatever max_fails allows (docs/lifecycle.md, "Failed for good").
	Permanent bool

	// Committed means that the result is complete. A worker of the original TDF writes a result field by field. The
	// result is incomplete until the last field is written. If the worker loses the round earlier, the result stays
	// incomplete.
	Committed bool

	ProgramSHA256 string // SHA-256 of the fetched file; "" for a program in a directory made by hand

	// Resource usage. 0 means unknown.
	Seconds    Seconds // run time of run.sh
	CPUSeconds Seconds // CPU time of run.sh and the processes that it started
	MaxRSS     int64   // peak memory in bytes

	OutputBytes, ErrorBytes int64 // number of bytes printed; Output and Error may be cut (max_output)

	Result   string   // content of result.json; "" if there is no such file
	Files    Files    // the files that the round has brought back
	Packed   string   // these files as tar.gz, if they were asked for; otherwise ""
	Progress Progress // last reported progress
	Tail     string   // while the program runs, the last 4 KiB of its output, as of the last renewal of the lease
	TailEnd  string   // where Tail ends; see ParseTailEnd

	FollowUps IDRange // the tasks that its result, or the callback for it, has opened

	// While the task waits for its dependencies: how many of them the server has looked up, how many of these have not
	// ended, and why a dependency is not met; "" if there is no such dependency.
	Linked, Waits int
	Unmet         string

	LastOutput Time // while the program runs, the time when it last printed something; 0 if it has not printed anything

	// Unread lists the texts of the round that were not read. Their fields are empty.
	Unread Texts
}

// A Progress says how much of its work a program has done.
type Progress struct {
	Fraction float64 `json:"fraction" doc:"from 0 to 1"`
	Text     string  `json:"text,omitempty"`
}

// Rounds holds rounds of a task by number. To save memory, it does not contain rounds without properties in Redis, and
// rounds that were not read.
type Rounds map[int]*Round

// At returns round n. If rounds does not contain this round, At returns a new empty Round. Changes to this empty Round
// do not change the task.
func (rounds Rounds) At(n int) *Round {
	if r := rounds[n]; r != nil {
		return r
	}
	return &Round{}
}

// All iterates over the rounds in the order of their numbers.
func (rounds Rounds) All() iter.Seq2[int, *Round] {
	return func(yield func(int, *Round) bool) {
		for _, n := range slices.Sorted(maps.Keys(rounds)) {
			if !yield(n, rounds[n]) {
				return
			}
		}
	}
}

// Current returns the current round, which is never nil.
func (t *Task) Current() *Round { return t.Rounds.At(t.Round) }

// Opened returns the time at which the task was opened, or 0 if it is unknown or was not read.
func (t *Task) Opened() Time { return t.Rounds.At(0).Entered[Open] }

// ErrNoTask means that no task has the given id.
var ErrNoTask = NewError(CodeNotFound, "there is no such task")

// LeaseExpired reports whether the lease of a running task has run out at the time now. If the worker does not renew
// the lease soon, the server declares the round lost (docs/guarantees.md, "Leases").
func (t *Task) LeaseExpired(now Time) bool {
	return t.State == Running && t.Current().Claim != "" && t.LeaseUntil > 0 && now >= t.LeaseUntil
}

// LastRun returns the number of the round that ran last. Usually this is the current round. It is the previous round if
// the task is open, expired or cancelled, and no worker has claimed the current round. LastRun returns 0 if the task
// never ran.
func (t *Task) LastRun() int {
	if t.Current().Worker == "" && t.Round > 0 && t.mayLackClaim() {
		return t.Round - 1
	}
	return t.Round
}

// mayLackClaim reports whether a task can reach this state and outcome without a claim in the current round.
func (t *Task) mayLackClaim() bool {
	return t.State == Open || t.State == Expired || t.State == Archived && (t.Outcome == string(Expired) ||
		t.Outcome == Cancelled)
}

// LastOutput returns the text that the last run ([Task.LastRun]) printed to stdout. It returns "" while the round runs.
// It also returns "" if the text was not read.
func (t *Task) LastOutput() string { return t.Rounds.At(t.LastRun()).Output }

// LastError returns the text that the last run printed to stderr, or the reason why the program could not be run, or
// "" as [Task.LastOutput] does.
func (t *Task) LastError() string { return t.Rounds.At(t.LastRun()).Error }

// LastResult returns the content of the last run's result.json, or "" if there is none or if it was not read
// (docs/programs.md, "The round's directory").
func (t *Task) LastResult() string { return t.Rounds.At(t.LastRun()).Result }

// An IDRange has the ids from First to Last. The zero range is empty.
type IDRange struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// A Field is a property of a task, with its name in Redis and its value.
type Field struct{ Name, Value string }

// A Counter is the name of a property that transitions raise by one.
type Counter string

// The counters. The sum of the first five counters depends on the number of the round (docs/lifecycle.md, "Rounds").
const (
	Fails     Counter = "fails"
	Timeouts  Counter = "timeouts"
	Losses    Counter = "losses"
	Releases  Counter = "releases"
	Reopens   Counter = "reopens"
	Revisions Counter = "revision"
)

// EndedAt returns when the task finished, or 0 if this is unknown. Archiving does not change it.
func (t *Task) EndedAt() Time {
	r := t.Current()
	switch {
	case t.State.Settled():
		return r.Entered[t.State]
	case t.Outcome == Cancelled:
		return r.Entered[Expired]
	case State(t.Outcome).Settled():
		return r.Entered[State(t.Outcome)]
	}
	return 0
}
