package tdf

import (
	"errors"
	"iter"
	"maps"
	"slices"
)

// A Task is a definition and what became of it.
type Task struct {
	Properties
	ID    int64
	State State
	Round int // the current one; the first is 0

	Fails, Timeouts, Losses, Releases, Reopens, Revision int

	// UnfitHosts is how many of its rounds were given back because of the worker's host
	// (docs/lifecycle.md, "Released rounds").
	UnfitHosts int

	// NotOn are the workers that must not run it: those that it was taken from for good
	// (docs/lifecycle.md, "By hand").
	NotOn []string

	// Checkpoint is what the program left for its next round, on whatever worker
	// (docs/programs.md, "The round's directory").
	Checkpoint string

	// Outcome of a finished task: succeeded, failed, timed_out, expired or cancelled; it
	// stays when the task is archived. "" before that.
	Outcome string
	Log     string // one line for each transition: when, who, what

	Ready      Time // its score among the open ones, where that is neither StartAfter nor when it was opened; else 0
	Deadline   Time // of the current claim: when it is timed out or expired; 0 without a claim
	LeaseUntil Time // of the current claim; 0 without a claim

	// Rounds has the current round, and those before it that were read. Of a task that was loaded only to be judged,
	// past rounds say no more than who ran them.
	Rounds Rounds

	// Unread are texts of the task that were not read, and are empty for that reason; of a whole task there are none.
	Unread Texts
}

// Cancelled is the outcome of a task that a manager gave up; its state is expired.
const Cancelled = "cancelled"

// A Round is one execution of a task, or the wait for it.
type Round struct {
	Entered    map[State]Time // when the task entered that state in this round
	TimedOutAt Time           // when the round timed out; 0: it did not
	FailedAt   Time           // when the round was found to have failed; 0: it was not
	LostAt     Time           // when the round was lost with its worker; 0: it was not
	Started    Time           // when the program was there and began, if that was later than the claim; else 0

	Worker string // who ran it
	Claim  string // the claim's random id; "" for a worker of the original TDF

	Output   string // stdout, to the byte
	Error    string // stderr, to the byte; or why the program could not be run
	HasError bool   // Error is not empty, also where the text itself was not loaded
	Exit     string // "0" to "255", "signal: killed"; "" if there was none, or nobody noted it

	// Committed says that the result is whole. One that a worker of the original TDF is
	// still writing, or wrote into a round that was not its own any more, is not.
	Committed bool

	ProgramSHA256 string // of what the worker fetched; "" for a program that was put there by hand

	// What the round cost; 0: nobody noted it.
	Seconds    Seconds // from the begin of run.sh to its end
	CPUSeconds Seconds // of run.sh and what it started
	MaxRSS     int64   // bytes; the most memory that was in use

	OutputBytes, ErrorBytes int64 // the true sizes, where Output and Error are cut (max_output)

	Result   string   // what the program left in result.json; "" for none
	Progress Progress // as the program told it last
	Tail     string   // while the program runs: the last 4 KiB that it printed, as of the last renewal
	PID      int      // of run.sh, on its worker's host; 0: not known

	LastOutput Time // when the program printed something last, as of the last renewal; 0: not yet

	// Unread are texts of the round that were not read, and are empty for that reason.
	Unread Texts
}

// A Progress is what a program tells about how far it is.
type Progress struct {
	Fraction float64 // from 0 to 1
	Text     string
}

// Rounds are rounds of a task by their numbers. A round that left nothing in Redis, or that was not read, is not among
// them, so the number of a round says nothing about what a task takes in memory.
type Rounds map[int]*Round

// At returns the round n; where it is not among them, an empty one that is in no task.
func (rounds Rounds) At(n int) *Round {
	if r := rounds[n]; r != nil {
		return r
	}
	return &Round{}
}

// All returns the rounds and their numbers in order.
func (rounds Rounds) All() iter.Seq2[int, *Round] {
	return func(yield func(int, *Round) bool) {
		for _, n := range slices.Sorted(maps.Keys(rounds)) {
			if !yield(n, rounds[n]) {
				return
			}
		}
	}
}

// Current returns the current round.
func (t *Task) Current() *Round { return t.Rounds.At(t.Round) }

// ErrNoTask says that there is no task of that id.
var ErrNoTask = errors.New("there is no such task")

// LeaseExpired reports whether a running task has a claim that its worker no longer renews: the server is about to
// declare the round lost (docs/lifecycle.md).
func (t *Task) LeaseExpired(now Time) bool {
	return t.State == Running && t.Current().Claim != "" && t.LeaseUntil > 0 && now >= t.LeaseUntil
}
