package managertest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// begin is when each test begins.
var begin = tdf.At(time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC))

// A world is all that is kept in Redis otherwise, and the clock.
type world struct {
	t        T
	mu       sync.Mutex
	now      tdf.Time
	tasks    map[int64]*entry
	lastID   int64
	programs map[string]func(Run) Result
	changed  tdf.Time // when anything happened last
	done     int      // how many tasks were done so far
	told     int      // how many of them the manager was woken for
}

// An entry is a task, with its score in its list and the run that is under way.
type entry struct {
	hash    tdf.Hash
	score   tdf.Time
	run     *running
	updates []redisstate.Update // of all rounds, in their order
}

func (e *entry) state() tdf.State { return tdf.State(e.hash["state"]) }

func (e *entry) group() string { return e.hash["group"] }

func newWorld(t T) *world {
	return &world{
		t: t, now: begin, changed: begin, tasks: map[int64]*entry{},
		programs: map[string]func(Run) Result{},
	}
}

func (w *world) ids() []int64 { return slices.Sorted(maps.Keys(w.tasks)) }

// task reads one; nil where there is none.
func (w *world) task(id int64) *tdf.Task {
	e := w.tasks[id]
	if e == nil {
		return nil
	}
	t, _ := tdf.ParseTask(id, e.hash) // definitions were checked when they were opened
	return t
}

func (w *world) open(who string, d *tdf.Properties) int64 {
	w.lastID++
	id := w.lastID
	score, _ := d.Schedule()
	e := &entry{hash: tdf.Hash{"id": strconv.FormatInt(id, 10)}, score: w.moment(score)}
	for _, f := range d.OpenFields("managertest") {
		e.hash[f.Name] = f.Value
	}
	e.hash[tdf.RoundField(0, string(tdf.Open))] = w.now.String()
	e.note(w.now, who, "open")
	w.tasks[id] = e
	w.changed = w.now
	return id
}

func (e *entry) note(now tdf.Time, who, what string) {
	line := fmt.Sprintf("%s %s: %s", now, who, what)
	if e.hash["log"] != "" {
		line = e.hash["log"] + "\n" + line
	}
	e.hash["log"] = line
}

// check returns what keeps a move from being made; nil if nothing does.
func (w *world) check(m *tdf.Move) error {
	t := w.task(m.ID)
	switch {
	case t == nil:
		return &tdf.StateError{ID: m.ID, Verb: m.Verb, State: tdf.None}
	case t.State != m.From || t.Round != m.Round || m.Claim != "" && cmp.Or(t.Current().Claim, tdf.NoClaim) != m.Claim:
		return &tdf.StateError{ID: m.ID, Verb: m.Verb, State: t.State, Round: t.Round}
	}
	return nil
}

// move makes a move that was checked.
func (w *world) move(who string, m *tdf.Move) {
	if m.Verb == tdf.VerbRemove {
		delete(w.tasks, m.ID)
		return
	}
	e := w.tasks[m.ID]
	for _, f := range m.Set {
		e.hash[f.Name] = f.Value
	}
	for _, s := range m.Stamp {
		e.hash[s.Name] = w.moment(s.At).String()
	}
	for _, name := range m.Clear {
		delete(e.hash, name)
	}
	e.score = w.moment(m.Score)
	e.run = nil
	if m.To.Settled() {
		w.done++
	}
	e.note(w.now, who, m.Note)
	w.changed = w.now
}

func (w *world) moment(m tdf.Moment) tdf.Time {
	t := w.now.Add(m.After)
	if m.Max > 0 {
		t = min(t, m.Max)
	}
	return max(t, m.Min)
}

func (w *world) has(group string) bool {
	for _, e := range w.tasks {
		if e.group() == group {
			return true
		}
	}
	return false
}

// apply does all of a unit or nothing.
func (w *world) apply(who string, u redisstate.Unit) redisstate.Outcome {
	if u.NewGroup != "" && w.has(u.NewGroup) {
		return redisstate.Outcome{Err: redisstate.ErrGroupTaken}
	}
	for i := range u.Moves {
		if err := w.check(&u.Moves[i]); err != nil {
			return redisstate.Outcome{Err: err}
		}
	}
	for i := range u.Moves {
		w.move(who, &u.Moves[i])
	}
	var o redisstate.Outcome
	for i := range u.Open {
		o.IDs = append(o.IDs, w.open(who, &u.Open[i]))
	}
	return o
}
