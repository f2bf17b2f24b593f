package redisstate

import (
	"context"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf"
)

// A form is what similar moves have in common: the states, the round, and the names of the properties. For example, all
// results of round 0 have one form. The script move.lua makes moves of one form.
type form struct {
	units []int // the positions of its units in the call

	shared    []tdf.Field // properties that have the same value in all moves
	own       []int       // the positions of the other properties in Move.Set
	ownMoment bool        // each move has its own min and max for its first moment
}

// maxForms is how many forms of a call get a call of move.lua.
const maxForms = 4

// formsOf returns the forms of the units that move.lua can make, with at least one in four of the units, and the
// positions of the other units.
func formsOf(units []Unit) (forms []*form, others []int) {
	byKey := map[string]*form{}
	var key []byte
	for i := range units {
		key = key[:0]
		if units[i].isOneMove() {
			key = appendFormKey(key, &units[i].Moves[0])
		}
		f := byKey[string(key)]
		if f == nil {
			f = &form{ownMoment: len(key) > 0 && hasOwnMoment(&units[i].Moves[0])}
			byKey[string(key)] = f
			forms = append(forms, f)
		}
		f.units = append(f.units, i)
	}
	large := func(f *form) bool { return f != byKey[""] && maxForms*len(f.units) >= len(units) }
	for _, f := range forms {
		if !large(f) {
			others = append(others, f.units...)
		}
	}
	slices.Sort(others)
	forms = slices.DeleteFunc(forms, func(f *form) bool { return !large(f) })
	for _, f := range forms {
		f.share(units)
	}
	return forms, others
}

// isOneMove reports whether the unit is a single move from one state to another.
func (u *Unit) isOneMove() bool {
	if len(u.Moves) != 1 || len(u.Open) > 0 || u.NewGroup != "" {
		return false
	}
	m := &u.Moves[0]
	return !m.Repair && m.To != tdf.None && m.To != m.From
}

// hasOwnMoment reports whether the move's first moment is the end of a program, which differs from move to move.
func hasOwnMoment(m *tdf.Move) bool {
	return len(m.Stamp) > 0 && m.Stamp[0].At.After == 0 && m.Stamp[0].At.Max > 0
}

// appendFormKey appends a text that is the same for moves of the same form.
func appendFormKey(key []byte, m *tdf.Move) []byte {
	key = append(append(append(key, m.From...), ' '), m.To...)
	key = strconv.AppendInt(append(key, ' '), int64(m.Round), 10)
	key = appendMoment(appendMoment(key, m.Score), m.NextDue)
	key = strconv.AppendQuote(key, m.Note)
	for _, f := range m.Set {
		key = append(append(key, ' '), f.Name...)
	}
	for i, s := range m.Stamp {
		key = append(append(key, ' '), s.Name...)
		if i == 0 && hasOwnMoment(m) {
			key = append(key, '*')
		} else {
			key = appendMoment(key, s.At)
		}
	}
	for _, name := range m.Clear {
		key = strconv.AppendQuote(key, name)
	}
	return key
}

func appendMoment(key []byte, m tdf.Moment) []byte {
	if m == tdf.Now {
		return append(key, '|')
	}
	for _, t := range []float64{float64(m.After), float64(m.Min), float64(m.Max)} {
		key = strconv.AppendFloat(append(key, ','), t, 'g', -1, 64)
	}
	return key
}

// share finds the properties that have the same value in all moves.
func (f *form) share(units []Unit) {
	for j, field := range units[f.units[0]].Moves[0].Set {
		same := true
		for _, i := range f.units {
			same = same && units[i].Moves[0].Set[j].Value == field.Value
		}
		if same {
			f.shared = append(f.shared, field)
		} else {
			f.own = append(f.own, j)
		}
	}
}

// move makes one call of move.lua with units of the form f. Its answer is that of transact.
func (s *Store) move(ctx context.Context, who string, f *form, units []Unit, once bool) ([]Outcome, error) {
	reply, err := s.callOnce(ctx, s.scripts.move, s.moveKeys(ctx, &units[0].Moves[0]), once, func(e *encoder) {
		s.encodeMove(e, who, f, units)
	})
	if err != nil {
		return nil, err
	}
	return outcomes(units, reply)
}

func (s *Store) moveKeys(ctx context.Context, first *tdf.Move) []string {
	return append([]string{
		s.keys.calls(s.boot), s.keys.Due(), s.keys.List(first.From), s.keys.List(first.To), s.keys.List(tdf.Executed),
	}, s.wakeKeys(ctx, first.To)...)
}

// encodeMove adds the arguments of move.lua that follow the sequence number.
func (s *Store) encodeMove(e *encoder, who string, f *form, units []Unit) {
	e.add(s.keys.taskPrefix(), s.keys.groupPrefix(), who)
	e.form(&units[0].Moves[0], f)
	e.moves(f, units)
}

// form adds the form f of a call. The argument first is the first of its moves.
func (e *encoder) form(first *tdf.Move, f *form) {
	e.args = append(e.args, string(first.From), first.Round, string(first.To), groupCode(first.To))
	e.add(moment(first.Score), moment(first.NextDue), first.Note)
	e.fields(f.shared)
	e.stamps(first.Stamp)
	e.strings(first.Clear)
	e.count(len(f.own))
	for _, j := range f.own {
		e.add(first.Set[j].Name)
	}
	e.flag(f.ownMoment)
}

// moves adds the moves of units of the form f.
func (e *encoder) moves(f *form, units []Unit) {
	for i := range units {
		m := &units[i].Moves[0]
		e.args = append(e.args, m.ID, m.Claim, m.Due, m.Group)
		for _, j := range f.own {
			e.add(m.Set[j].Value)
		}
		if f.ownMoment {
			at := m.Stamp[0].At
			e.add(at.Min.String(), upperBound(at.Max))
		}
	}
}
