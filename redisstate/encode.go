package redisstate

import (
	"slices"
	"strconv"
	"sync"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

func addCallLists(e *conn.Args, v callLists) {
	e.States(v.lists)
	e.Count(len(v.wakes))
	for _, w := range v.wakes {
		e.Add(string(w.of))
	}
}

// holdingStates adds the states in which tasks hold unique keys. If the call needs none, it adds empty lists.
func addHoldingStates(e *conn.Args, needed bool) {
	for _, until := range []task.UniqueUntil{task.UntilFinished, task.UntilArchived} {
		var states []task.State
		if needed {
			states = until.HoldingStates()
		}
		e.States(states)
	}
}

// archivingStates adds the states in which a task in the list archived counts as archived. If the call needs none, it
// adds an empty list.
func addArchivingStates(e *conn.Args, needed bool) {
	var states []task.State
	if needed {
		states = task.SettledStates
	}
	e.States(states)
}

// movesFinished reports whether the unit moves a finished task, other than by a repair.
func (u Unit) movesFinished() bool {
	return slices.ContainsFunc(u.Moves, func(m rules.Move) bool { return m.From.Finished() && !m.Repair })
}

// needsKeys reports whether a task of the unit has a unique key.
func (u Unit) needsKeys() bool {
	return slices.ContainsFunc(u.Moves, func(m rules.Move) bool { return m.Unique != "" }) ||
		slices.ContainsFunc(u.Open, func(d task.Properties) bool { return d.Unique != "" })
}

func addFields(e *conn.Args, fields []task.Field) {
	e.Count(len(fields))
	for _, f := range fields {
		e.Add(f.Name, f.Value)
	}
}

func addUnits(e *conn.Args, k keys.Names, units []Unit) {
	var opened [][]task.Field
	for i := range units {
		opened = append(opened, openFields(k.Namespace(), units[i].Open)...)
	}
	shared := sharedFields(opened)
	forms := formsOf(units)
	e.Count(len(forms.all))
	for _, f := range forms.all {
		addForm(e, f)
	}
	addFields(e, shared)
	e.Count(len(units))
	for i := range units {
		u := &units[i]
		e.Count(len(u.Moves))
		e.Count(len(u.Open))
		e.Add(string(u.If), u.Decide)
		e.Add(u.flags())
		if c := u.Periodic; c != nil {
			e.Add(c.Name, c.From, c.To, "", "")
		} else {
			addStageChange(e, u.Stage, k)
		}
		for j := range u.Moves {
			e.Count(forms.of[0].number)
			addMove(e, &u.Moves[j], forms.of[0])
			forms.of = forms.of[1:]
		}
		for j := range u.Open {
			e.Add(index.Pair(u.Open[j].Group, u.Open[j].Queue), firstPlace(&u.Open[j]))
			addOpening(e, &u.Open[j], opened[0], shared)
			opened = opened[1:]
		}
	}
}

// firstPlace returns the place of a new task for the function no_place of places.lua, or "".
func firstPlace(d *task.Properties) string {
	place := d.FirstPlace()
	switch place {
	case "":
		return ""
	case task.WaitingPlace:
		place += " " + d.Place()
	}
	return d.Owner + "\n" + place
}

func addStageChange(e *conn.Args, c *StageChange, k keys.Names) {
	if c == nil {
		e.Add("")
		return
	}
	e.Add(c.Stage, c.From.String(), c.To.String())
	switch {
	case c.Definitions == "":
		e.Add("", "")
	case c.Chunks > 0:
		e.Add(k.Definitions(c.Definitions), strconv.Itoa(c.Chunks))
	default:
		e.Add(k.Definitions(c.Definitions), "-"+strconv.Itoa(c.Opened))
	}
}

// addOpening adds a new task, without the names of its indexes and its place.
func addOpening(e *conn.Args, d *task.Properties, fields, shared []task.Field) {
	score, look := rules.Schedule(d)
	e.Add(moment(score), moment(look), d.Unique)
	addFields(e, without(fields, shared))
}

// openFields returns the fields of each new task, without those that the script newtask.lua writes.
func openFields(namespace string, definitions []task.Properties) [][]task.Field {
	fields, all := make([][]task.Field, len(definitions)), make([]task.Field, 0, task.UsualFields*len(definitions))
	for i := range definitions {
		first := len(all)
		all = definitions[i].AppendOpenFields(all, namespace)
		of := without(all[first:len(all):len(all)], presetFields())
		all = all[:first+len(of)]
		fields[i] = of[:len(of):len(of)]
	}
	return fields
}

// presetFields returns the fields of a new task that newtask.lua writes. A call that opens a task contains its other
// fields, and those of another value than these.
var presetFields = sync.OnceValue(func() []task.Field {
	usual := task.Defaults("", "", "")
	return slices.DeleteFunc(usual.OpenFields(""), func(f task.Field) bool { return f.Value == "" })
})

// without returns the fields that are not shared.
func without(fields, shared []task.Field) []task.Field {
	return slices.DeleteFunc(fields, func(f task.Field) bool { return slices.Contains(shared, f) })
}

// sharedFields returns the properties that all new tasks of a call have in common. The call contains each of them only
// once.
func sharedFields(opened [][]task.Field) []task.Field {
	if len(opened) == 0 {
		return nil
	}
	ofUnit := func(f task.Field) bool { // in each unit, the places of new tasks mean other ids
		return f.Name == task.FieldAfter || f.Name == task.FieldAfterAny
	}
	shared := slices.DeleteFunc(slices.Clone(opened[0]), ofUnit)
	for _, fields := range opened[1:] {
		shared = slices.DeleteFunc(shared, func(f task.Field) bool { return !slices.Contains(fields, f) })
	}
	return shared
}

// moment returns a Moment in the notation of the scripts.
func moment(m rules.Moment) string {
	switch {
	case m == rules.Now:
		return ""
	case m.Min >= task.Never:
		return "-"
	}
	return m.After.String() + "," + m.Min.String() + "," + upperBound(m.Max)
}

// upperBound returns the Max of a Moment in the notation of the scripts.
func upperBound(t task.Time) string {
	if t > 0 && t < task.Never {
		return t.String()
	}
	return ""
}
