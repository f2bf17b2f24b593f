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
	shared    []tdf.Field // properties that have the same value in all moves
	own       []int       // the positions of the other properties in Move.Set
	ownMoment bool        // each move has its own min and max for its first moment
	limit     bool        // each move has a limit key
}

// longRun is the smallest number of successive units of one form that get a call of move.lua. Fewer units share a call
// of transact.lua with units of other forms, because each call has a fixed cost.
const longRun = 32

// nextCall returns how many of the units go into the next call, and their form. The form is nil if transact.lua carries
// out the units. The calls keep the order of the units, so that after an error the first outcomes are known.
func nextCall(units []Unit) (n int, f *form) {
	for n < len(units) {
		run := runOf(units[n:])
		if run >= longRun || run == len(units) {
			if n == 0 {
				return run, formOf(units[:run])
			}
			return n, nil
		}
		n += max(run, 1)
	}
	return n, nil
}

// runOf returns how many of the first units have the same form. It returns 0 if move.lua cannot carry out the first unit.
func runOf(units []Unit) int {
	var first, key []byte
	for i := range units {
		if !units[i].isOneMove() {
			return i
		}
		if key = appendFormKey(key[:0], &units[i].Moves[0]); i == 0 {
			first = slices.Clone(key)
		} else if !slices.Equal(first, key) {
			return i
		}
	}
	return len(units)
}

// formOf returns the form of units that have the same form.
func formOf(units []Unit) *form {
	f := &form{ownMoment: hasOwnMoment(&units[0].Moves[0]), limit: units[0].Moves[0].Limit != ""}
	for j, field := range units[0].Moves[0].Set {
		differs := func(u Unit) bool { return u.Moves[0].Set[j].Value != field.Value }
		if slices.ContainsFunc(units, differs) {
			f.own = append(f.own, j)
		} else {
			f.shared = append(f.shared, field)
		}
	}
	return f
}

// isOneMove reports whether the unit is a single move from one state to another.
func (u *Unit) isOneMove() bool {
	if len(u.Moves) != 1 || len(u.Open) > 0 || u.NewGroup != "" || u.Decide != "" || u.Stage != nil {
		return false
	}
	m := &u.Moves[0]
	return !m.Repair && m.Unique == "" && m.Revision == "" && m.To != tdf.None && m.To != m.From && !changesPlace(m)
}

// changesPlace reports whether the move changes the task's place in the open list. The script move.lua cannot do so.
func changesPlace(m *tdf.Move) bool {
	return slices.Contains(m.Clear, tdf.FieldPlace) ||
		slices.ContainsFunc(m.Set, func(f tdf.Field) bool { return f.Name == tdf.FieldPlace })
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
	key = strconv.AppendBool(key, m.Limit != "")
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

// move makes one call of move.lua with units of the form f. It returns the same as transact.
func (s *Store) move(ctx context.Context, who string, f *form, units []Unit, once bool) ([]Outcome, error) {
	reply, err := s.callOnce(ctx, moveScript, s.moveKeys(ctx, &units[0].Moves[0]), once, outcomesOf(len(units)), func(e *encoder) {
		s.encodeMove(e, who, f, units)
	})
	if err != nil {
		return nil, err
	}
	return outcomes(units, reply), nil
}

func (s *Store) moveKeys(ctx context.Context, first *tdf.Move) []string {
	other := tdf.Executed
	if first.From.Finished() {
		other = tdf.Archived
	}
	return append([]string{
		s.keys.calls(s.boot), s.keys.Due(), s.keys.List(first.From), s.keys.List(first.To), s.keys.List(other),
	}, s.wakeKeys(ctx, first.To)...)
}

// encodeMove adds the arguments of move.lua that follow the sequence number.
func (s *Store) encodeMove(e *encoder, who string, f *form, units []Unit) {
	e.add(s.keys.taskPrefix(), s.keys.groupPrefix(), who)
	e.archivingStates(units[0].movesFinished())
	e.form(&units[0].Moves[0], f)
	e.moves(f, units)
}

// form adds the form f of a call. All moves of the call share these values, so form takes them from the first move.
func (e *encoder) form(first *tdf.Move, f *form) {
	e.args = append(e.args, string(first.From), first.Round, string(first.To), groupCode(first.To))
	e.flag(first.Ends())
	e.add(moment(first.Score), moment(first.NextDue), first.Note)
	e.fields(f.shared)
	e.stamps(first.Stamp)
	e.strings(first.Clear)
	e.count(len(f.own))
	for _, j := range f.own {
		e.add(first.Set[j].Name)
	}
	e.flag(f.ownMoment)
	e.flag(f.limit)
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
		if f.limit {
			e.add(m.Limit)
		}
	}
}
