package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// Limits of periodic tasks (docs/periodic.md, "Limits").
const (
	MaxPeriodics     = 1000
	MaxPeriodicTasks = 250      // one step opens all of them
	MaxPeriodic      = 64 << 10 // the largest record in bytes
)

// An Overlap says what a server does at a time of a [Periodic] while tasks of an earlier time are unfinished.
type Overlap string

// The rules for overlaps.
const (
	OverlapSkip Overlap = "skip" // it skips the time; this is the default
	OverlapOpen Overlap = "open" // it opens the tasks
)

// A Missed says which times of a [Periodic] a server opens late. A time is missed if a later time has come before a
// server has opened it, or if it was a minute ago.
type Missed string

// The rules for missed times.
const (
	MissedLast Missed = "last" // it opens the last one; this is the default
	MissedNone Missed = "none" // it opens none of them
	MissedAll  Missed = "all"  // it opens all of them, but at most the newest 100
)

// missedAfter is the time after which a time is missed.
const missedAfter = Seconds(60)

// A Periodic says which tasks the servers open again and again, and at which times (docs/periodic.md).
type Periodic struct {
	Name string `json:"-"` // 1 to 200 bytes

	// Schedule has the five fields of cron, such as "30 3 * * *", or is @hourly, @daily, @weekly, @monthly, @yearly, or
	// @every with a duration, such as "@every 90m". Zone is the IANA name of its time zone, such as "Europe/Berlin". The
	// default is UTC.
	Schedule string `json:"schedule"`
	Zone     string `json:"zone,omitempty"`

	Overlap Overlap      `json:"overlap"`
	Missed  Missed       `json:"missed"` // MissedAll needs OverlapOpen
	Tasks   []Definition `json:"tasks"`  // 1 to 250 definitions without absolute times
}

// A PeriodicRecord is what Redis keeps of a [Periodic].
type PeriodicRecord struct {
	// IDs has the tasks that were opened last, and with OverlapSkip also those of earlier times that were unfinished
	// then. The step that opens the tasks adds them.
	IDs []int64 `json:"ids"`
	Periodic
	PausedBy string       `json:"paused_by,omitempty"` // who has paused it; "" if it is not paused
	PausedAt Time         `json:"paused_at,omitempty"`
	Next     Time         `json:"next,omitempty"` // 0 means that no time comes in the next five years
	Last     *PeriodicRun `json:"last,omitempty"` // nil if no time has come
}

// A PeriodicRun says what happened at a time of a [Periodic].
type PeriodicRun struct {
	Time    Time            `json:"time"`
	Outcome PeriodicOutcome `json:"outcome"`
	Why     string          `json:"why,omitempty"` // "" if there is nothing to explain
}

// A PeriodicOutcome is what happened at a time.
type PeriodicOutcome string

// The outcomes.
const (
	PeriodicOpened  PeriodicOutcome = "opened"
	PeriodicSkipped PeriodicOutcome = "skipped" // because of the rule for overlaps
	PeriodicMissed  PeriodicOutcome = "missed"  // because of the rule for missed times
	PeriodicFailed  PeriodicOutcome = "failed"
)

// Check returns a *[PropertyError] if p is invalid. It does not check the properties of the tasks.
func (p *Periodic) Check() error {
	_, err := p.schedule()
	return err
}

func (p *Periodic) schedule() (s schedule, err error) {
	if err := CheckPeriodicName(p.Name); err != nil {
		return s, err
	}
	switch n := len(p.Tasks); {
	case p.Overlap != OverlapSkip && p.Overlap != OverlapOpen:
		return s, invalidProperty("overlap", "%.100q is unknown; want skip or open", p.Overlap)
	case p.Missed != MissedLast && p.Missed != MissedNone && p.Missed != MissedAll:
		return s, invalidProperty("missed", "%.100q is unknown; want last, none or all", p.Missed)
	case p.Missed == MissedAll && p.Overlap != OverlapOpen:
		return s, invalidProperty("missed", "all would skip most of the missed times; with all, want overlap=open")
	case n < 1 || n > MaxPeriodicTasks:
		return s, invalidProperty("tasks", "there are %d; want 1 to %d", n, MaxPeriodicTasks)
	}
	return parseSchedule(p.Schedule, p.Zone)
}

// CheckPeriodicName returns a *[PropertyError] if no periodic can have the name.
func CheckPeriodicName(name string) error {
	if name == "" {
		return invalidProperty("name", "is empty; want 1 to %d bytes", MaxName)
	}
	return checkName("name", name)
}

// NewPeriodicRecord returns the record of a new periodic, whose tasks have the given properties.
func NewPeriodicRecord(p Periodic, tasks []Properties, now Time) (*PeriodicRecord, error) {
	p.Overlap, p.Missed = cmp.Or(p.Overlap, OverlapSkip), cmp.Or(p.Missed, MissedLast)
	p.Tasks = make([]Definition, len(tasks))
	for i := range tasks {
		d := &tasks[i]
		if d.StartAfter != 0 || d.EndBefore != Never || d.ClaimBefore != Never {
			return nil, invalidProperty("tasks", "task %d has start_after, end_before or claim_before, which are the "+
				"same at each time; leave them out", i+1)
		}
		p.Tasks[i] = d.unusual()
	}
	s, err := p.schedule()
	if err != nil {
		return nil, err
	}
	r := &PeriodicRecord{Periodic: p}
	if n := len(r.String()); n > MaxPeriodic {
		return nil, invalidProperty("tasks", "they have %d bytes; at most %d are allowed; a task can open others", n,
			MaxPeriodic)
	}
	if r.Next = s.next(now); r.Next == 0 {
		return nil, invalidProperty("schedule", "%q has no time in the next five years", p.Schedule)
	}
	return r, nil
}

// unusual returns a definition whose fields are set only if the properties differ from their defaults.
func (d *Properties) unusual() Definition {
	to := Definition{After: d.After, AfterAny: d.AfterAny}
	for i := range PropertyTable {
		if p := &PropertyTable[i]; !p.isUsual(d) {
			p.defined(d, &to)
		}
	}
	return to
}

// Properties returns the properties of the tasks.
func (p *Periodic) Properties() []Properties {
	all := make([]Properties, len(p.Tasks))
	for i := range p.Tasks {
		all[i] = p.Tasks[i].Properties(Defaults("", "", ""))
	}
	return all
}

// Replaced returns the record with another definition. If the definition is the same, nothing changes. The pause and
// what is known of the last time stay. If the schedule or the zone has changed, the times begin anew.
func (r *PeriodicRecord) Replaced(by *PeriodicRecord) *PeriodicRecord {
	next := *r
	next.Periodic = by.Periodic
	if r.Schedule != by.Schedule || r.Zone != by.Zone {
		next.Next = by.Next
	}
	return &next
}

// Resumed returns the record without its pause. Its times begin anew, so those during the pause are not missed.
func (r *PeriodicRecord) Resumed(now Time) (*PeriodicRecord, error) {
	s, err := r.schedule()
	if err != nil {
		return nil, err
	}
	resumed := *r
	resumed.PausedBy, resumed.PausedAt, resumed.Next = "", 0, s.next(now)
	return &resumed, nil
}

// A PeriodicStep is what a server must do next for a [Periodic].
type PeriodicStep struct {
	Time Time // the time that has come
	Next Time
	Open bool   // whether the tasks are opened, unless tasks of an earlier time are unfinished
	Why  string // which times were missed
}

// Step returns what a server must do now. It returns false if no time has come.
func (r *PeriodicRecord) Step(now Time) (PeriodicStep, bool, error) {
	if r.PausedBy != "" || r.Next == 0 || r.Next > now {
		return PeriodicStep{}, false, nil
	}
	s, err := r.schedule()
	if err != nil {
		return PeriodicStep{}, false, err
	}
	times, next := s.newest(r.Next, now)
	at := len(times) - 1
	if r.Missed == MissedAll {
		at = 0
	}
	step := PeriodicStep{Time: times[at], Next: next, Open: true}
	if at+1 < len(times) {
		step.Next = times[at+1]
	}
	if times[at] != r.Next {
		step.Why = "the times from " + clock(r.Next) + " to this one were missed"
	}
	if r.Missed == MissedNone && now.Sub(step.Time) > missedAfter {
		step.Open, step.Why = false, "no server has opened it by "+clock(now)
	}
	return step, true, nil
}

func clock(t Time) string { return t.Std().UTC().Format("2006-01-02 15:04:05 MST") }

// After returns the record after a time at which no tasks were opened.
func (r *PeriodicRecord) After(run PeriodicRun, next Time) *PeriodicRecord {
	run.Why = strings.ToValidUTF8(run.Why[:min(len(run.Why), mostWhy)], "")
	after := *r
	after.Next, after.Last = next, &run
	return &after
}

// Opening is like After, for a step that opens the tasks. The record lacks their ids. Unfinished has the ids of tasks
// of earlier times.
func (r *PeriodicRecord) Opening(why string, at, next Time, unfinished []int64) *PeriodicRecord {
	after := r.After(PeriodicRun{Time: at, Outcome: PeriodicOpened, Why: why}, next)
	after.IDs = unfinished[:min(len(unfinished), mostIDs)]
	if r.Overlap == OverlapOpen {
		after.IDs = nil
	}
	return after
}

// Bounds of the parts of a record that are no definition.
const (
	mostWhy = 500  // bytes
	mostIDs = 1000 // a user can open tasks while others are unfinished

	maxPeriodicState = 32 << 10 // bytes of them all
)

// String returns the record as Redis stores it.
func (r *PeriodicRecord) String() string {
	stored := *r
	stored.IDs = append([]int64{}, r.IDs...) // not null
	text, err := json.Marshal(stored)
	if err != nil { // a time of Redis is finite
		panic(err)
	}
	return string(text)
}

// ParsePeriodic reads a record. If the record is invalid, it returns an error.
func ParsePeriodic(name, text string) (*PeriodicRecord, error) {
	r := &PeriodicRecord{Periodic: Periodic{Name: name}}
	if err := r.parse(text); err != nil {
		return nil, fmt.Errorf("periodic %.100q: %w", name, err)
	}
	return r, nil
}

func (r *PeriodicRecord) parse(text string) error {
	if n := len(text); n > MaxPeriodic+maxPeriodicState {
		return fmt.Errorf("its record has %d bytes; another program has written it", n)
	}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return err
	}
	if r.Next != 0 && (r.Next < earliest || r.Next > unixtime.Latest) {
		return invalidProperty("next", "%v is no time of a schedule", float64(r.Next))
	}
	return r.Check()
}

// ParsePeriodics reads all records, ordered by name. It leaves out the invalid ones, and returns their errors.
func ParsePeriodics(texts Hash) (all []*PeriodicRecord, invalid []error) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		r, err := ParsePeriodic(name, texts[name])
		if err != nil {
			invalid = append(invalid, err)
			continue
		}
		all = append(all, r)
	}
	return all, invalid
}
