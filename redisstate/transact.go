package redisstate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
)

// Bounds of one call, so that it keeps Redis from its other clients for a few ms only.
const (
	maxTasksPerCall = 1000
	maxBytesPerCall = 4 << 20
)

// A Unit is what happens together or not at all: some moves, and some tasks that are opened
// with them.
type Unit struct {
	Moves []tdf.Move
	Open  []tdf.Definition
}

// An Outcome is what became of a unit.
type Outcome struct {
	IDs []int64 // of the tasks that were opened
	Err error   // *[tdf.StateError]: nothing of the unit was done
}

// Apply carries out units, each by itself, in as few calls as the bounds allow; who is noted
// in the tasks' logs. An error means that the units of some calls may not have been done:
// the outcomes tell which were. No task may be named twice.
func (s *Store) Apply(ctx context.Context, who string, units ...Unit) ([]Outcome, error) {
	return s.apply(ctx, who, units, true)
}

func (s *Store) apply(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	var all []Outcome
	for len(units) > 0 {
		n := batch(units)
		outcomes, err := s.transact(ctx, who, units[:n], once)
		all = append(all, outcomes...)
		if err != nil {
			return all, err
		}
		units = units[n:]
	}
	return all, nil
}

// batch returns how many of the units make up the next call: at least one.
func batch(units []Unit) int {
	tasks, bytes := 0, 0
	for i := range units {
		u := &units[i]
		tasks += len(u.Moves) + len(u.Open)
		bytes += u.size()
		if i > 0 && (tasks > maxTasksPerCall || bytes > maxBytesPerCall) {
			return i
		}
	}
	return len(units)
}

func (u *Unit) size() int {
	bytes := 0
	for i := range u.Moves {
		for _, f := range u.Moves[i].Set {
			bytes += len(f.Value)
		}
	}
	for i := range u.Open {
		bytes += len(u.Open[i].Input) + len(u.Open[i].Meta) + len(u.Open[i].Source)
	}
	return bytes
}

// transact makes one call. Not once: a repeat is known by the claims of its moves.
func (s *Store) transact(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	script := s.scripts.transact
	for i := range units {
		if len(units[i].Open) > 0 {
			script = s.scripts.open
		}
	}
	lists := s.involved(ctx, units)
	keys := s.transactKeys(lists)
	var reply any
	var err error
	args := func(slot string, sequence uint64) []any {
		e := encoder{}
		e.add(slot, strconv.FormatUint(sequence, 10), s.keys.taskPrefix(), s.keys.groupPrefix(), who)
		e.involved(lists)
		e.units(s.keys.ns, units)
		return e.args
	}
	if once {
		reply, err = s.call(ctx, script, keys, func(slot int, sequence uint64) []any {
			return args(strconv.Itoa(slot), sequence)
		})
	} else {
		reply, err = s.run(ctx, script, keys, args("", 0))
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return outcomes(units, reply)
}

// involved are a call's lists and the wake lists of those whose newcomers somebody waits for.
type involved struct {
	lists []tdf.State
	wakes []wakeList
}

type wakeList struct {
	key string
	of  tdf.State
}

func (s *Store) involved(ctx context.Context, units []Unit) involved {
	v := involved{lists: listsOf(units)}
	for _, list := range v.lists {
		switch {
		case list == tdf.Open:
			v.wakes = append(v.wakes, wakeList{s.keys.wakeOpen(), list})
		case list == tdf.Executed:
			v.wakes = append(v.wakes, wakeList{s.keys.wakeServer(), list})
		case list.Judged():
			for _, boot := range s.managersToWake(ctx) {
				v.wakes = append(v.wakes, wakeList{s.keys.wakeManager(boot), list})
			}
		}
	}
	return v
}

// listsOf are the lists that a call may touch: a claim's result may be found among the
// executed (see transact.lua), and a repair looks everywhere.
func listsOf(units []Unit) []tdf.State {
	used := map[tdf.State]bool{}
	for i := range units {
		if len(units[i].Open) > 0 {
			used[tdf.Open] = true
		}
		for j := range units[i].Moves {
			m := &units[i].Moves[j]
			if m.Mend {
				return tdf.Lists
			}
			used[m.From], used[m.To] = true, true
			if m.Claim != "" {
				used[tdf.Executed] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(tdf.Lists), func(list tdf.State) bool { return !used[list] })
}

func (s *Store) transactKeys(v involved) []string {
	keys := []string{s.keys.calls(s.boot), s.keys.Due(), s.keys.taskID()}
	for _, list := range v.lists {
		keys = append(keys, s.keys.List(list))
	}
	for _, w := range v.wakes {
		keys = append(keys, w.key)
	}
	return keys
}

// encoder puts a call's arguments together, as transact.lua's header lists them.
type encoder struct{ args []any }

func (e *encoder) add(values ...string) {
	for _, v := range values {
		e.args = append(e.args, v)
	}
}

func (e *encoder) count(n int) { e.args = append(e.args, n) }

func (e *encoder) strings(values []string) {
	e.count(len(values))
	e.add(values...)
}

func (e *encoder) involved(v involved) {
	e.count(len(v.lists))
	for _, list := range v.lists {
		e.args = append(e.args, string(list), groupCode(list))
	}
	e.count(len(v.wakes))
	for _, w := range v.wakes {
		e.add(string(w.of))
	}
}

func (e *encoder) fields(fields []tdf.Field) {
	e.count(len(fields))
	for _, f := range fields {
		e.add(f.Name, f.Value)
	}
}

func (e *encoder) units(namespace string, units []Unit) {
	var opened [][]tdf.Field
	for i := range units {
		for j := range units[i].Open {
			opened = append(opened, units[i].Open[j].OpenFields(namespace))
		}
	}
	shared := sharedFields(opened)
	shapes := shapesOf(units)
	e.shapes(shapes)
	e.fields(shared)
	e.count(len(units))
	for i := range units {
		u := &units[i]
		e.count(len(u.Moves))
		e.count(len(u.Open))
		for j := range u.Moves {
			e.move(&u.Moves[j], shapes)
		}
		for j := range u.Open {
			e.opening(&u.Open[j], opened[0], shared)
			opened = opened[1:]
		}
	}
}

func (e *encoder) shapes(shapes *shapes) {
	e.count(len(shapes.all))
	for _, s := range shapes.all {
		mend := ""
		if s.first.Mend {
			mend = "1"
		}
		e.args = append(e.args, string(s.first.From), s.first.Round, string(s.first.To), mend)
		e.add(moment(s.first.Score), moment(s.first.Look), s.first.Note)
		e.fields(s.shared)
		e.count(len(s.first.Stamp))
		for _, stamp := range s.first.Stamp {
			e.add(stamp.Name, moment(stamp.At))
		}
		e.strings(s.first.Clear)
		e.strings(s.own)
	}
}

func (e *encoder) move(m *tdf.Move, shapes *shapes) {
	s := shapes.byKey[shapeKey(m)]
	e.args = append(e.args, s.number, m.ID, m.Claim, m.Due, m.Group)
	for _, name := range s.own {
		i := slices.IndexFunc(m.Set, func(f tdf.Field) bool { return f.Name == name })
		e.add(m.Set[i].Value)
	}
}

func (e *encoder) opening(d *tdf.Definition, fields, shared []tdf.Field) {
	score, look := d.Opening()
	e.add(d.Group, moment(score), moment(look))
	own := slices.DeleteFunc(fields, func(f tdf.Field) bool { return slices.Contains(shared, f) })
	e.fields(own)
}

// sharedFields returns what all new tasks of a call have in common, to be sent once.
func sharedFields(opened [][]tdf.Field) []tdf.Field {
	if len(opened) < 2 {
		return nil
	}
	shared := slices.Clone(opened[0])
	for _, fields := range opened[1:] {
		shared = slices.DeleteFunc(shared, func(f tdf.Field) bool { return !slices.Contains(fields, f) })
	}
	return shared
}

// moment encodes a moment as transact.lua reads it.
func moment(m tdf.Moment) string {
	switch {
	case m == tdf.Now:
		return ""
	case m.Min >= tdf.Never:
		return "-"
	}
	most := ""
	if m.Max > 0 && m.Max < tdf.Never {
		most = m.Max.String()
	}
	return m.After.String() + "," + m.Min.String() + "," + most
}

// outcomes reads transact's answer.
func outcomes(units []Unit, reply any) ([]Outcome, error) {
	lines := strings.Split(fmt.Sprint(reply), "\n")
	if len(lines) != len(units) {
		return nil, fmt.Errorf("redis: the script answered %d units of %d", len(lines), len(units))
	}
	all := make([]Outcome, len(units))
	for i, line := range lines {
		all[i] = outcome(&units[i], line)
	}
	return all, nil
}

func outcome(u *Unit, line string) Outcome {
	if first, ok := strings.CutPrefix(line, "+"); ok {
		id, _ := strconv.ParseInt(first, 10, 64)
		ids := make([]int64, len(u.Open))
		for i := range ids {
			ids[i] = id + int64(i)
		}
		return Outcome{IDs: ids}
	}
	found := parseFound(line)
	for i := range u.Moves {
		if u.Moves[i].ID == found.ID {
			found.Verb = u.Moves[i].Verb
		}
	}
	return Outcome{Err: found}
}

// parseFound reads '-id round state': what a script found where it expected something else.
func parseFound(line string) *tdf.StateError {
	e := &tdf.StateError{}
	words := strings.SplitN(strings.TrimPrefix(line, "-"), " ", 3)
	if len(words) == 3 {
		e.ID, _ = strconv.ParseInt(words[0], 10, 64)
		e.Round, _ = strconv.Atoi(words[1])
		e.State = tdf.State(words[2])
	}
	return e
}

// notDue is the fence of a task that is not to be in `due` at all.
const notDue = "-1"

// dueScore writes a score as the script compares it: exactly.
func dueScore(score float64) string {
	if math.IsInf(score, 0) {
		return ""
	}
	return strconv.FormatFloat(score, 'f', -1, 64)
}
