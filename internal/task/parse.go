package task

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// Names of a task's properties in Redis (docs/redis.md). The names of the counters are the values of [Counter], and
// [RoundField] returns the names of a round's properties.
const (
	fieldID            = "id"
	fieldNamespace     = "namespace"
	FieldState         = "state"
	FieldRound         = "round"
	FieldPlace         = "place"
	FieldAfter         = "after"
	FieldAfterAny      = "after_any"
	FieldAfterGroup    = "after_group"
	FieldAfterGroupAny = "after_group_any"
	fieldLinks         = "links"
	FieldDependents    = "dependents"
	FieldEndings       = "endings"
	FieldOutcome       = "outcome"
	fieldLog           = "log"
	FieldReady         = "ready"
	FieldDeadline      = "deadline"
	FieldLeaseUntil    = "lease_until"
	fieldLease         = "lease"
	FieldUnfit         = "unfit"
	FieldNotOn         = "not_on"
	FieldInputReplaced = "input_replaced"
	FieldOutputsFrom   = "outputs_from"
	FieldOutputsGone   = "outputs_removed"
	FieldCheckpoint    = "checkpoint"
	FieldMade          = "made"
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
	RoundTailEnd       = "tail_end"
	RoundLastOutput    = "last_output"
	RoundResult        = "result"
	RoundFiles         = "files"
	RoundFetched       = "fetched"
	RoundSeconds       = "seconds"
	RoundCPUSeconds    = "cpu_seconds"
	RoundMaxRSS        = "max_rss"
	RoundOutputBytes   = "output_bytes"
	RoundErrorBytes    = "error_bytes"
	RoundPermanent     = "permanent"
	RoundTimeout       = "timeout"
	RoundFailure       = "failure"
	RoundLost          = "lost"
	RoundLinked        = "linked"
	RoundReleased      = "released"
	RoundWaits         = "waits"
	RoundPrefetched    = "prefetched"
	RoundUnmet         = "unmet"
)

// RoundField returns the name in Redis of a round's property, such as "3:output".
func RoundField(round int, name string) string { return strconv.Itoa(round) + ":" + name }

// MaxRound is the number of the last round that a task can have. When this round ends, the task is not reopened. A
// higher number in Redis or in a dump is invalid and is read as 0.
const MaxRound = 99_999

// A Hash is a task's hash in Redis: all of its properties, or only the requested ones.
type Hash map[string]string

// Round returns the number of the current round, from 0 to [MaxRound]. It returns 0 if the number is missing or
// invalid.
func (h Hash) Round() int {
	p := parser{h: h}
	return p.count(FieldRound, 0, MaxRound)
}

// ParseTask reads a task's hash. If a property has an invalid value, the task gets the default of the property. The
// error is a *[PropertyError] for the first invalid property. The returned task is never nil.
func ParseTask(id int64, h Hash) (*Task, error) {
	p := parser{h: h}
	t := &Task{ID: id, State: State(h[FieldState]), Round: p.count(FieldRound, 0, MaxRound)}
	p.properties(&t.Properties)
	t.Fails, t.Timeouts, t.Losses = p.counter(Fails), p.counter(Timeouts), p.counter(Losses)
	t.Releases, t.Reopens, t.Revision = p.counter(Releases), p.counter(Reopens), p.counter(Revisions)
	t.UnfitHosts, t.NotOn, t.Checkpoint = p.count(FieldUnfit, 0, MaxCount), ParseNotOn(h[FieldNotOn]),
		h[FieldCheckpoint]
	t.Outcome, t.Log, t.PlacedIn = h[FieldOutcome], h[fieldLog], h[FieldPlace]
	t.Links, t.HasLinks, t.Dependents = p.soundCount(fieldLinks), h[fieldLinks] != "", p.soundCount(FieldDependents)
	t.Made = ParseBlobs(h[FieldMade])
	t.InputReplaced = h[FieldInputReplaced] != ""
	t.OutputsFrom, t.OutputsRemoved = p.count(FieldOutputsFrom, 0, MaxRound+1), p.time(FieldOutputsGone, 0)
	t.Ready, t.Deadline, t.LeaseUntil = p.time(FieldReady, 0), p.time(FieldDeadline, 0), p.time(FieldLeaseUntil, 0)
	t.Lease, _ = ParseSeconds(h[fieldLease])
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
	if s == "" || len(s) > 9 {
		return 0
	}
	n, _ := strconv.ParseUint(s, 10, 31)
	return int(n)
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

// asOriginal returns a time as TDF writes it. Like the original TDF, it accepts blanks around the number, negative
// numbers, and numbers above the largest time, which mean "inf".
func asOriginal(s string) string {
	s = strings.TrimSpace(s)
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || !unixtime.IsDecimal(s) || math.IsNaN(f):
		return s
	case f > unixtime.Latest:
		return "inf"
	}
	return unixtime.Format(max(f, 0))
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// parseStamp reads a time of a round. It returns 0 for an invalid text.
func parseStamp(s string) Time {
	if s == "" {
		return 0
	}
	t, err := ParseTime(s)
	if err != nil {
		return 0
	}
	return t
}

// parseBytes reads a number of a round, and returns the default def for an invalid text or a negative number.
func parseBytes(s string, def int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return def
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
	for name, value := range p.h {
		number, name, ofRound := strings.Cut(name, ":")
		if !ofRound {
			continue
		}
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i > current || strconv.Itoa(i) != number {
			continue
		}
		if rounds[i] == nil {
			rounds[i] = &Round{OutputBytes: unknownBytes, ErrorBytes: unknownBytes}
		}
		rounds[i].read(name, value)
	}
	for i, r := range rounds {
		p.complete(i, r)
	}
	if rounds[current] == nil {
		rounds[current] = &Round{}
	}
	return rounds
}

// unknownBytes stands for a number of bytes that has not been read.
const unknownBytes = -1

// read reads a property of the round. It ignores unknown ones.
func (r *Round) read(name, value string) {
	if read := roundProperties[name]; read != nil {
		read(r, value)
		return
	}
	i := slices.Index(States, State(name))
	if i < 0 {
		return
	}
	if at := parseStamp(value); at > 0 {
		if r.Entered == nil {
			r.Entered = map[State]Time{}
		}
		r.Entered[States[i]] = at
	}
}

// roundProperties read the properties of a round, apart from the times at which it entered its states. A round has few
// of them, so that it takes less time to look up what it has than each of these names.
var roundProperties = map[string]func(r *Round, text string){
	RoundTimeout:       func(r *Round, text string) { r.TimedOutAt = parseStamp(text) },
	RoundFailure:       func(r *Round, text string) { r.FailedAt = parseStamp(text) },
	RoundLost:          func(r *Round, text string) { r.LostAt = parseStamp(text) },
	RoundStarted:       func(r *Round, text string) { r.Started = parseStamp(text) },
	RoundWorker:        func(r *Round, text string) { r.Worker = text },
	RoundClaim:         func(r *Round, text string) { r.Claim = text },
	RoundPrefetched:    func(r *Round, text string) { r.Prefetched = text != "" },
	RoundOutput:        func(r *Round, text string) { r.Output = text },
	RoundError:         func(r *Round, text string) { r.Error, r.HasError = text, text != "" },
	RoundExit:          func(r *Round, text string) { r.Exit = text },
	RoundPermanent:     func(r *Round, text string) { r.Permanent = text != "" },
	RoundProgramSHA256: func(r *Round, text string) { r.ProgramSHA256 = text },
	RoundSeconds:       func(r *Round, text string) { r.Seconds = Seconds(parseStamp(text)) },
	RoundCPUSeconds:    func(r *Round, text string) { r.CPUSeconds = Seconds(parseStamp(text)) },
	RoundMaxRSS:        func(r *Round, text string) { r.MaxRSS = parseBytes(text, 0) },
	RoundOutputBytes:   func(r *Round, text string) { r.OutputBytes = parseBytes(text, unknownBytes) },
	RoundErrorBytes:    func(r *Round, text string) { r.ErrorBytes = parseBytes(text, unknownBytes) },
	RoundResult:        func(r *Round, text string) { r.Result = text },
	RoundFiles:         func(r *Round, text string) { r.Packed = text },
	RoundFetched:       func(r *Round, text string) { r.Files = ParseFiles(text) },
	RoundTail:          func(r *Round, text string) { r.Tail = text },
	RoundTailEnd:       func(r *Round, text string) { r.TailEnd = text },
	RoundProgress:      func(r *Round, text string) { r.Progress = parseProgress(text) },
	RoundLastOutput:    func(r *Round, text string) { r.LastOutput = parseStamp(text) },
	RoundLinked:        func(r *Round, text string) { r.Linked = SoundCount(text) },
	RoundWaits:         func(r *Round, text string) { r.Waits = SoundCount(text) },
	RoundUnmet:         func(r *Round, text string) { r.Unmet = text },
	roundFollowUps:     func(r *Round, text string) { r.FollowUps = parseIDRange(text) },
}

// complete sets what follows from several properties of the round.
func (p *parser) complete(i int, r *Round) {
	if r.OutputBytes == unknownBytes {
		r.OutputBytes = int64(len(r.Output))
	}
	if r.ErrorBytes == unknownBytes {
		r.ErrorBytes = int64(len(r.Error))
	}
	r.Committed = p.committed(i, r)
}

// committed reports whether a round has a complete result. A worker of this project writes a result in one step. A
// worker of the original TDF writes it field by field, so the result is complete only if it has stdout and stderr.
func (p *parser) committed(i int, r *Round) bool {
	if r.Entered[Executed] == 0 {
		return false
	}
	if r.Claim != "" {
		return true
	}
	_, output := p.h[RoundField(i, RoundOutput)]
	_, failure := p.h[RoundField(i, RoundError)]
	return output && failure
}

// parseFiles returns no files for an invalid text.
func ParseFiles(s string) Files {
	count, rest, _ := strings.Cut(s, " ")
	bytes, kept, _ := strings.Cut(rest, " ")
	return Files{SoundCount(count), parseBytes(bytes, 0), kept}
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

// Archive changes the properties of a task whose id has the score at in the list archived. If the task is finished, it
// is archived, although a manager of the original TDF has left its state. Archive does not change other tasks.
func (h Hash) Archive(at Time) {
	if !State(h[FieldState]).Settled() {
		return
	}
	if h[FieldOutcome] == "" {
		h[FieldOutcome] = h[FieldState]
	}
	h[FieldState] = string(Archived)
	if name := RoundField(h.Round(), string(Archived)); h[name] == "" {
		h[name] = at.String()
	}
}
