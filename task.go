package tdf

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	Entered map[State]Time // when the task entered that state in this round
	TimedOutAt Time           // when the round timed out; 0: it did not
	FailedAt Time           // when the round was found to have failed; 0: it was not
	LostAt    Time           // when the round was lost with its worker; 0: it was not
	Started Time           // when the program was there and began, if that was later than the claim; else 0

	Worker string // who ran it
	Claim  string // the claim's random id; "" for a worker of the original TDF

	Output string // stdout, to the byte
	Error  string // stderr, to the byte; or why the program could not be run
	Failed bool   // Error is not empty, also where the text itself was not loaded
	Exit   string // "0" to "255", "signal: killed"; "" if there was none, or nobody noted it

	// Permanent says that the worker knows that every further round would fail, too: a failure of this round is
	// final, whatever max_fails allows (docs/lifecycle.md, "Failed for good").
	Permanent bool

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

// Names of a task's properties in Redis (docs/redis.md), beside the counters, which are
// their own names, and those of one round, which [RoundField] builds.
const (
	fieldID          = "id"
	fieldNamespace   = "namespace"
	fieldProgram     = "program"
	fieldSource      = "source"
	fieldInput       = "input"
	fieldStartAfter  = "start_after"
	fieldEndBefore   = "end_before"
	fieldTimeout     = "timeout"
	fieldMaxFails    = "max_fails"
	fieldMaxTimeouts = "max_timeouts"
	fieldMaxLosses   = "max_losses"
	fieldState       = "state"
	fieldRound       = "round"
	fieldGroup       = "group"
	fieldMeta        = "meta"
	fieldFailOn      = "fail_on"
	fieldOutcome     = "outcome"
	fieldLog         = "log"
	fieldReady       = "ready"
	fieldDeadline    = "deadline"
	fieldLeaseUntil  = "lease_until"
	fieldUnfit       = "unfit"
	fieldNotOn       = "not_on"
	FieldCheckpoint  = "checkpoint"
)

// Names of the properties of one round, after its number and a colon.
const (
	RoundWorker        = "worker"
	RoundClaim         = "claim"
	RoundStarted       = "started"
	RoundOutput        = "output"
	RoundError         = "error"
	RoundExit          = "exit"
	RoundProgramSHA256 = "program_sha256"
	RoundProgress      = "progress"
	RoundTail          = "tail"
	RoundPID           = "pid"
	RoundLastOutput    = "last_output"
	roundResult        = "result"
	roundSeconds       = "seconds"
	roundCPUSeconds    = "cpu_seconds"
	roundMaxRSS        = "max_rss"
	roundOutputBytes   = "output_bytes"
	roundErrorBytes    = "error_bytes"
	roundTimeout       = "timeout"
	roundFailure       = "failure"
	roundLost          = "lost"
	roundPermanent     = "permanent"
)

// RoundField returns the name of a round's property: "3:output".
func RoundField(round int, name string) string { return strconv.Itoa(round) + ":" + name }

// MaxRound is the last round that a task can have: it ends there, whatever else is forgiven. A higher number in
// Redis or in a dump was written by other hands, and counts as 0.
const MaxRound = 99_999

// A Hash is a task as Redis holds it, or those of its properties that were asked for.
type Hash map[string]string

// Round returns the number of the current round, as [ParseTask] reads it: from 0 to [MaxRound].
func (h Hash) Round() int {
	p := parser{h: h}
	return p.count(fieldRound, 0, MaxRound)
}

// ParseTask reads a task's hash. It reads what it can: a property that makes no sense gets
// its default, and the first such one is named by the error, a *[PropertyError]. The task
// is never nil.
func ParseTask(id int64, h Hash) (*Task, error) {
	p := parser{h: h}
	t := &Task{
		ID: id, State: State(h[fieldState]), Round: p.count(fieldRound, 0, MaxRound),
		Properties: p.definition(),
		Fails:      p.counter(Fails), Timeouts: p.counter(Timeouts), Losses: p.counter(Losses),
		Releases: p.counter(Releases), Reopens: p.counter(Reopens), Revision: p.counter(Revisions),
		UnfitHosts: p.count(fieldUnfit, 0, maxCount), NotOn: splitLines(h[fieldNotOn]), Checkpoint: h[FieldCheckpoint],
		Outcome: h[fieldOutcome], Log: h[fieldLog],
		Ready: p.time(fieldReady, 0), Deadline: p.time(fieldDeadline, 0), LeaseUntil: p.time(fieldLeaseUntil, 0),
	}
	t.Rounds = p.rounds(t.Round)
	if p.err == nil {
		p.err = t.Validate()
	}
	return t, p.err
}

// parser reads properties and keeps the first error.
type parser struct {
	h   Hash
	err error
}

func (p *parser) definition() Properties {
	d := Defaults(p.h[fieldProgram], p.h[fieldSource], p.h[fieldInput])
	d.StartAfter = p.time(fieldStartAfter, d.StartAfter)
	d.EndBefore = p.time(fieldEndBefore, d.EndBefore)
	d.Timeout = Seconds(p.time(fieldTimeout, Time(d.Timeout)))
	d.MaxFails = p.count(fieldMaxFails, d.MaxFails, maxCount)
	d.MaxTimeouts = p.count(fieldMaxTimeouts, d.MaxTimeouts, maxCount)
	d.MaxLosses = p.count(fieldMaxLosses, d.MaxLosses, maxCount)
	d.Group, d.Meta = p.h[fieldGroup], p.h[fieldMeta]
	if f := p.h[fieldFailOn]; f != "" {
		d.FailOn = FailOn(f)
	}
	return d
}

func (p *parser) counter(c Counter) int { return p.count(string(c), 0, maxCount) }

func (p *parser) count(name string, def, most int) int {
	s, ok := p.h[name]
	if !ok || s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most || strconv.Itoa(n) != s {
		p.fail(property(name, "%q is not a number from 0 to %d", s, most))
		return def
	}
	return n
}

func (p *parser) time(name string, def Time) Time {
	s, ok := p.h[name]
	if !ok || s == "" {
		return def
	}
	t, err := ParseTime(strings.ToLower(s))
	if err != nil {
		p.fail(property(name, "%q is %v", s, err))
		return def
	}
	return t
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// stamp reads a moment of a round; one that is garbled was never written by us.
func (p *parser) stamp(round int, name string) Time {
	t, err := ParseTime(p.h[RoundField(round, name)])
	if err != nil {
		return 0
	}
	return t
}

// bytes reads a size of a round.
func (p *parser) bytes(round int, name string, def int) int64 {
	n, err := strconv.ParseInt(p.h[RoundField(round, name)], 10, 64)
	if err != nil || n < 0 {
		return int64(def)
	}
	return n
}

// splitLines returns the lines of a property that has several; none of an empty one.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

func parseProgress(s string) Progress {
	number, text, _ := strings.Cut(s, " ")
	fraction, err := strconv.ParseFloat(number, 64)
	if err != nil || !(fraction >= 0 && fraction <= 1) {
		return Progress{}
	}
	return Progress{fraction, text}
}

// rounds reads the current round, and those before it that have properties.
func (p *parser) rounds(current int) Rounds {
	rounds := Rounds{current: p.round(current)}
	for name := range p.h {
		number, _, ofRound := strings.Cut(name, ":")
		if !ofRound {
			continue
		}
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < current && rounds[i] == nil && strconv.Itoa(i) == number {
			rounds[i] = p.round(i)
		}
	}
	return rounds
}

func (p *parser) round(i int) *Round {
	text := func(name string) string { return p.h[RoundField(i, name)] }
	r := &Round{
		TimedOutAt: p.stamp(i, roundTimeout), FailedAt: p.stamp(i, roundFailure), LostAt: p.stamp(i, roundLost),
		Started: p.stamp(i, RoundStarted),
		Worker:  text(RoundWorker), Claim: text(RoundClaim),
		Output: text(RoundOutput), Error: text(RoundError), Exit: text(RoundExit),
		Permanent:     text(roundPermanent) != "",
		ProgramSHA256: text(RoundProgramSHA256),
		Seconds:       Seconds(p.stamp(i, roundSeconds)), CPUSeconds: Seconds(p.stamp(i, roundCPUSeconds)),
		MaxRSS: p.bytes(i, roundMaxRSS, 0),
		Result: text(roundResult), Tail: text(RoundTail), Progress: parseProgress(text(RoundProgress)),
		PID: int(p.bytes(i, RoundPID, 0)), LastOutput: p.stamp(i, RoundLastOutput),
	}
	r.OutputBytes = p.bytes(i, roundOutputBytes, len(r.Output))
	r.ErrorBytes = p.bytes(i, roundErrorBytes, len(r.Error))
	for _, s := range States {
		if at := p.stamp(i, string(s)); at > 0 {
			if r.Entered == nil {
				r.Entered = map[State]Time{}
			}
			r.Entered[s] = at
		}
	}
	r.Failed = r.Error != ""
	r.Committed = p.committed(i, r)
	return r
}

// committed: a worker of this project writes a result in one step. One of the original TDF
// writes field after field, so both texts must be there before anybody judges.
func (p *parser) committed(i int, r *Round) bool {
	if r.Entered[Executed] == 0 {
		return false
	}
	_, output := p.h[RoundField(i, RoundOutput)]
	_, failure := p.h[RoundField(i, RoundError)]
	return r.Claim != "" || output && failure
}

// ErrNoTask says that there is no task of that id.
var ErrNoTask = errors.New("there is no such task")

// LeaseExpired reports whether a running task has a claim that its worker no longer renews: the server is about to
// declare the round lost (docs/lifecycle.md).
func (t *Task) LeaseExpired(now Time) bool {
	return t.State == Running && t.Current().Claim != "" && t.LeaseUntil > 0 && now >= t.LeaseUntil
}
