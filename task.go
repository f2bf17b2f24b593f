package tdf

import (
	"errors"
	"iter"
	"maps"
	"slices"
)

// A Task is a task with its properties, its state and its rounds.
type Task struct {
	Properties
	ID    int64
	State State
	Round int // number of the current round; the first is 0

	Fails, Timeouts, Losses, Releases, Reopens, Revision int // how often each [Counter] was raised

	// UnfitHosts is the number of rounds that were released because of the worker's host
	// (docs/lifecycle.md, "Released rounds").
	UnfitHosts int

	// NotOn are the names of workers that must not run the task again
	// (docs/lifecycle.md, "By hand").
	NotOn []string

	// Checkpoint is the checkpoint that the program left for its next round
	// (docs/programs.md, "The round's directory").
	Checkpoint string

	// Outcome is how a finished task ended: succeeded, failed, timed_out, expired or cancelled. It stays when the task is
	// archived. It is "" if the task is not finished.
	Outcome string
	Log     string // one line per transition: time, component or user, transition

	Ready      Time // score in the open list; 0 if the score is StartAfter or the time of opening
	Deadline   Time // when the current claim times out or expires; 0 without a claim
	LeaseUntil Time // end of the current claim's lease; 0 without a claim

	// Rounds are the current round, and the earlier rounds that were read. If the server loaded the task to settle it,
	// earlier rounds have only Worker and LostAt.
	Rounds Rounds

	// Unread are the texts of the task that were not read. Their fields are empty. A whole task has none.
	Unread Texts
}

// Cancelled is the outcome of a task that a user cancelled. The state of the task is expired.
const Cancelled = "cancelled"

// A Round is one round of a task, from its opening to its end.
type Round struct {
	Entered    map[State]Time // when the task entered each state in this round
	TimedOutAt Time           // when the round timed out; 0: it did not
	FailedAt   Time           // when the server found that the round had failed; 0: it did not fail
	LostAt     Time           // when the round was lost with its worker; 0: it was not
	Started    Time           // when the program began; 0 if it did not have to be fetched

	Worker string // name of the worker that claimed the round; "": none
	Claim  string // random id of the claim; "": no claim, or a worker of the original TDF

	Output   string // stdout, byte for byte
	Error    string // stderr, byte for byte; or why the program could not be run
	HasError bool   // the error text is not empty; also set if Error was not read
	Exit     string // "0" to "255", or "signal: killed"; "": unknown, or the program could not be run

	// Permanent means that the worker expects every further round to fail, too. A failure of this round is final,
	// whatever max_fails allows (docs/lifecycle.md, "Failed for good").
	Permanent bool

	// Committed means that the result is complete. A worker of the original TDF writes a result field by field. It may
	// still be writing, or may have written into a round that it no longer held.
	Committed bool

	ProgramSHA256 string // SHA-256 of the fetched file; "" for a program in a directory made by hand

	// Resource usage; 0: unknown.
	Seconds    Seconds // run time of run.sh
	CPUSeconds Seconds // CPU time of run.sh and the processes that it started
	MaxRSS     int64   // peak memory in bytes

	OutputBytes, ErrorBytes int64 // number of bytes printed; Output and Error may be cut (max_output)

	Result   string   // content of result.json; "": none
	Progress Progress // last reported progress
	Tail     string   // while the program runs: the last 4 KiB of its output, as of the last renewal
	PID      int      // process id of run.sh on its worker's host; 0: unknown

	LastOutput Time // when the program last printed something, as of the last renewal; 0: not yet

	// Unread are the texts of the round that were not read. Their fields are empty.
	Unread Texts
}

// A Progress is a program's report of how far it has got.
type Progress struct {
	Fraction float64 // from 0 to 1
	Text     string
}

// Rounds holds rounds of a task by number. It leaves out rounds that are empty in Redis or were not read. So a task in a high
// round needs little memory.
type Rounds map[int]*Round

// At returns round n. If there is no entry for n, it returns a new empty Round, which does not belong to the task.
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

// ErrNoTask means that no task has the given id.
var ErrNoTask = errors.New("there is no such task")

// LeaseExpired reports whether the lease of a running task has run out at the time now. The server will declare the round
// lost, unless the worker renews the lease first (docs/guarantees.md, "Leases").
func (t *Task) LeaseExpired(now Time) bool {
	return t.State == Running && t.Current().Claim != "" && t.LeaseUntil > 0 && now >= t.LeaseUntil
}
