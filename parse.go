package tdf

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Names of a task's properties in Redis (docs/redis.md). The names of the counters are the values of [Counter], and
// [RoundField] returns the names of a round's properties.
const (
	fieldID            = "id"
	fieldNamespace     = "namespace"
	fieldState         = "state"
	fieldRound         = "round"
	FieldPlace         = "place"
	FieldAfter         = "after"
	FieldAfterAny      = "after_any"
	FieldAfterGroup    = "after_group"
	FieldAfterGroupAny = "after_group_any"
	fieldLinks         = "links"
	FieldDependents    = "dependents"
	FieldEndings       = "endings"
	fieldOutcome       = "outcome"
	fieldLog           = "log"
	fieldReady         = "ready"
	fieldDeadline      = "deadline"
	fieldLeaseUntil    = "lease_until"
	fieldUnfit         = "unfit"
	fieldNotOn         = "not_on"
	fieldOutputsFrom   = "outputs_from"
	fieldOutputsGone   = "outputs_removed"
	FieldCheckpoint    = "checkpoint"
)

// Names of a round's properties, without the number of the round ([RoundField]).
const (
	RoundWorker        = "worker"
	RoundClaim         = "claim"
	RoundStarted       = "started"
	RoundOutput        = "output"
	RoundError         = "error"
	RoundExit          = "exit"
	RoundProgramSHA256 = "program_sha256"
	RoundProgress      = "progress"
	roundFollowUps     = "follow_ups"
	RoundTail          = "tail"
	RoundPID           = "pid"
	RoundLastOutput    = "last_output"
	roundResult        = "result"
	roundSeconds       = "seconds"
	roundCPUSeconds    = "cpu_seconds"
	roundMaxRSS        = "max_rss"
	roundOutputBytes   = "output_bytes"
	roundErrorBytes    = "error_bytes"
	roundPermanent     = "permanent"
	roundTimeout       = "timeout"
	roundFailure       = "failure"
	roundLost          = "lost"
	RoundLinked        = "linked"
	RoundReleased      = "released"
	RoundWaits         = "waits"
	RoundUnmet         = "unmet"
)

// RoundField returns the name in Redis of a round's property, such as "3:output".
func RoundField(round int, name string) string { return strconv.Itoa(round) + ":" + name }

// MaxRound is the number of the last round that a task can have. When this round ends, the task is not reopened. A
// higher number in Redis or in a dump is invalid and is read as 0.
const MaxRound = 99_999

// A Hash is a task's hash in Redis: all of its properties, or only the requested ones.
type Hash map[string]string

// Round returns the number of the current round, from 0 to [MaxRound]. It returns 0 if the number is missing or invalid.
func (h Hash) Round() int {
	p := parser{h: h}
	return p.count(fieldRound, 0, MaxRound)
}

// ParseTask reads a task's hash. If a property has an invalid value, the task gets the default of the property. The
// error is a *[PropertyError] for the first invalid property. The returned task is never nil.
func ParseTask(id int64, h Hash) (*Task, error) {
	p := parser{h: h}
	t := &Task{
		ID: id, State: State(h[fieldState]), Round: p.count(fieldRound, 0, MaxRound),
		Properties: p.properties(),
		Fails:      p.counter(Fails), Timeouts: p.counter(Timeouts), Losses: p.counter(Losses),
		Releases: p.counter(Releases), Reopens: p.counter(Reopens), Revision: p.counter(Revisions),
		UnfitHosts: p.count(fieldUnfit, 0, MaxCount), NotOn: splitLines(h[fieldNotOn]), Checkpoint: h[FieldCheckpoint],
		Outcome: h[fieldOutcome], Log: h[fieldLog], PlacedIn: h[FieldPlace],
		Links: p.soundCount(fieldLinks), HasLinks: h[fieldLinks] != "", Dependents: p.soundCount(FieldDependents),
		OutputsFrom: p.count(fieldOutputsFrom, 0, MaxRound+1), OutputsRemoved: p.time(fieldOutputsGone, 0),
		Ready: p.time(fieldReady, 0), Deadline: p.time(fieldDeadline, 0), LeaseUntil: p.time(fieldLeaseUntil, 0),
	}
	t.Rounds = p.rounds(t.Round)
	if p.err == nil {
		p.err = t.Validate()
	}
	return t, p.err
}

// parser reads properties from a hash and keeps the first error.
type parser struct {
	h   Hash
	err error
}

func (p *parser) counter(c Counter) int { return p.count(string(c), 0, MaxCount) }

func (p *parser) count(name string, def, most int) int {
	s, ok := p.h[name]
	if !ok || s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most || strconv.Itoa(n) != s {
		p.fail(invalidProperty(name, "%q is not a number from 0 to %d", s, most))
		return def
	}
	return n
}

// soundCount reads a number that TDF itself has written. A task with another value is not invalid.
func (p *parser) soundCount(name string) int {
	return SoundCount(p.h[name])
}

// SoundCount returns a number that TDF itself has written, or 0 for any other text.
func SoundCount(s string) int {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil && len(s) <= 9 {
		return int(n)
	}
	return 0
}

func (p *parser) time(name string, def Time) Time {
	s, ok := p.h[name]
	if !ok || s == "" {
		return def
	}
	t, err := ParseTime(strings.ToLower(s))
	if err != nil {
		p.fail(invalidProperty(name, "%q is %v", s, err))
		return def
	}
	return t
}

// asOriginal returns a time as TDF writes it. Like the original TDF, it accepts blanks around the number, negative numbers, and numbers
// above the largest time, which mean "inf".
func asOriginal(s string) string {
	s = strings.TrimSpace(s)
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || !isDecimal(s) || math.IsNaN(f):
		return s
	case f > maxFinite:
		return "inf"
	}
	return formatFloat(max(f, 0))
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// stamp reads a property of a round whose value is a time. It returns 0 if the time is missing or invalid.
func (p *parser) stamp(round int, name string) Time {
	value := p.h[RoundField(round, name)]
	if value == "" {
		return 0
	}
	t, err := ParseTime(value)
	if err != nil {
		return 0
	}
	return t
}

// bytes reads a property of a round whose value is a number from 0 up. If the number is missing or invalid, bytes
// returns the default def.
func (p *parser) bytes(round int, name string, def int) int64 {
	value := p.h[RoundField(round, name)]
	if value == "" {
		return int64(def)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return int64(def)
	}
	return n
}

// splitLines returns the lines of a property. An empty property has no lines.
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

// rounds reads the current round and those earlier rounds whose properties are in the hash.
func (p *parser) rounds(current int) Rounds {
	rounds := Rounds{}
	for name := range p.h {
		number, _, ofRound := strings.Cut(name, ":")
		if !ofRound {
			continue
		}
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i <= current && rounds[i] == nil && strconv.Itoa(i) == number {
			rounds[i] = p.round(i)
		}
	}
	if rounds[current] == nil {
		rounds[current] = &Round{}
	}
	return rounds
}

// parseIDRange returns the zero range for an invalid text.
func parseIDRange(s string) IDRange {
	from, to, _ := strings.Cut(s, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if errors.Join(err, err2) != nil || first < 1 || last < first || last >= 1<<40 {
		return IDRange{}
	}
	return IDRange{first, last}
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
		Linked: SoundCount(text(RoundLinked)), Waits: SoundCount(text(RoundWaits)), Unmet: text(RoundUnmet), FollowUps: parseIDRange(text(roundFollowUps)),
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
	r.HasError = r.Error != ""
	r.Committed = p.committed(i, r)
	return r
}

// committed reports whether a round has a complete result. A worker of this project writes a result in one step. A
// worker of the original TDF writes it field by field, so the result is complete only if it has stdout and stderr.
func (p *parser) committed(i int, r *Round) bool {
	if r.Entered[Executed] == 0 {
		return false
	}
	_, output := p.h[RoundField(i, RoundOutput)]
	_, failure := p.h[RoundField(i, RoundError)]
	return r.Claim != "" || output && failure
}
