package redisstate

import (
	"context"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A form is what similar moves of a call have in common: the states, the round, and the names of the properties. For
// example, all results of round 0 have one form. A call contains each form only once, to save bytes and time.
type form struct {
	number    int // number of the form in its call, counted from 1
	first     *rules.Move
	shared    []task.Field // properties that have the same value in all moves
	own       []int        // the positions of the other properties in Move.Set
	ownMoment bool         // each move has its own min and max for its first moment
}

// forms are the forms of the moves of a call.
type forms struct {
	all []*form
	of  []*form // the form of each move
}

func formsOf(units []Unit) forms {
	var f forms
	byKey := map[string]*form{}
	var key []byte
	for i := range units {
		for j := range units[i].Moves {
			m := &units[i].Moves[j]
			key = appendFormKey(key[:0], m)
			known := byKey[string(key)]
			if known == nil {
				known = &form{number: len(f.all) + 1, first: m, ownMoment: hasOwnMoment(m)}
				byKey[string(key)] = known
				f.all = append(f.all, known)
			}
			known.compare(m)
			f.of = append(f.of, known)
		}
	}
	for _, of := range f.all {
		for j, field := range of.first.Set {
			if !slices.Contains(of.own, j) {
				of.shared = append(of.shared, field)
			}
		}
	}
	return f
}

// compare finds the properties of a move that have other values than in the first move.
func (f *form) compare(m *rules.Move) {
	for j, field := range m.Set {
		if field.Value != f.first.Set[j].Value && !slices.Contains(f.own, j) {
			f.own = append(f.own, j)
		}
	}
}

// longRun is the smallest number of successive units of one form that get a call of move.lua. Fewer units share a call
// of transact.lua with units of other forms, because each call has a fixed cost.
const longRun = 32

// nextCall returns how many of the units go into the next call, and whether move.lua can carry them out. The calls keep
// the order of the units, so that after an error the first outcomes are known.
func nextCall(units []Unit) (n int, oneForm bool) {
	for n < len(units) {
		run := runOf(units[n:])
		if run >= longRun || run == len(units) {
			if n == 0 {
				return run, true
			}
			return n, false
		}
		n += max(run, 1)
	}
	return n, false
}

// runOf returns how many of the first units have the same form. It returns 0 if move.lua cannot carry out the first
// unit.
func runOf(units []Unit) int {
	var first, key []byte
	for i := range units {
		if !units[i].isOneMove() {
			return i
		}
		key = appendFormKey(key[:0], &units[i].Moves[0])
		if i == 0 {
			first = slices.Clone(key)
		} else if !slices.Equal(first, key) {
			return i
		}
	}
	return len(units)
}

// isOneMove reports whether the unit is a single move from one state to another.
func (u *Unit) isOneMove() bool {
	if len(u.Moves) != 1 || len(u.Open) > 0 || u.If != "" || u.Decide != "" || u.changesRecord() {
		return false
	}
	m := &u.Moves[0]
	return !m.Repair && !m.Updates && m.Unique == "" && m.To != task.None && m.To != m.From
}

// hasOwnMoment reports whether the move's first moment is the end of a program, which differs from move to move.
func hasOwnMoment(m *rules.Move) bool {
	return len(m.Stamp) > 0 && m.Stamp[0].At.After == 0 && m.Stamp[0].At.Max > 0
}

// appendFormKey appends a text that is the same for moves of the same form.
func appendFormKey(key []byte, m *rules.Move) []byte {
	for _, name := range []string{string(m.From), m.Revision, destination(m), linkKind(m)} {
		key = append(append(key, name...), ' ')
	}
	for _, on := range []bool{
		m.Repair, m.Updates, m.Claim != "", m.Due != "", m.Limit != "", m.Unique != "",
		hasOwnMoment(m),
	} {
		key = strconv.AppendBool(key, on)
	}
	key = strconv.AppendInt(key, int64(m.Round), 10)
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

func appendMoment(key []byte, m rules.Moment) []byte {
	if m == rules.Now {
		return append(key, '|')
	}
	for _, t := range []float64{float64(m.After), float64(m.Min), float64(m.Max)} {
		key = strconv.AppendFloat(append(key, ','), t, 'g', -1, 64)
	}
	return key
}

// linkKind says what the move does to tasks that wait for the task, in the notation of moving.lua.
func linkKind(m *rules.Move) string {
	switch {
	case m.Ends():
		return "ends"
	case m.Spoils():
		return "spoils"
	}
	return ""
}

// destination returns the state to which a move leads, in the notation of moving.lua.
func destination(m *rules.Move) string {
	switch {
	case m.Removes():
		return "-"
	case m.Verb == rules.VerbRequire:
		return "="
	}
	return string(m.To)
}

// move makes one call of move.lua. It returns the same as transact.
func (s *Store) move(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	reply, err := s.Conn.CallOnce(ctx, lua.Move, s.moveKeys(ctx, &units[0].Moves[0]), once, outcomesOf(len(units)),
		func(e *conn.Args) {
			s.encodeMove(e, who, units)
		})
	if conn.Unanswered(err) {
		return nil, err
	}
	return outcomes(units, reply), err
}

func (s *Store) moveKeys(ctx context.Context, first *rules.Move) []string {
	other := task.Executed
	if first.From.Finished() {
		other = task.Archived
	}
	return append([]string{
		s.Keys.Calls(s.Conn.Boot()), s.Keys.Due(), s.Keys.List(first.From), s.Keys.List(first.To), s.Keys.List(other),
	}, s.wakeKeys(ctx, first.To)...)
}

// encodeMove adds the arguments of move.lua that follow the sequence number.
func (s *Store) encodeMove(e *conn.Args, who string, units []Unit) {
	forms := formsOf(units)
	e.Add(s.Keys.TaskPrefix(), s.Keys.GroupPrefix(), who, "")
	flag := len(e.All) - 1
	addArchivingStates(e, units[0].movesFinished())
	if arePlain(units) {
		e.All[flag] = len(e.All) + 1
	}
	addForm(e, forms.all[0])
	for i := range units {
		addMove(e, &units[i].Moves[0], forms.all[0])
	}
}

// arePlain reports whether plain.lua may make the moves of these units, which have one form.
func arePlain(units []Unit) bool {
	m := &units[0].Moves[0]
	plain := m.Score == rules.Now && (m.NextDue == rules.Now || m.NextDue.Min >= task.Never) && len(m.Clear) == 0 &&
		m.From != task.Open && m.To != task.Open && m.Revision == "" && m.Due == ""
	for i, stamp := range m.Stamp {
		plain = plain && (stamp.At == rules.Now || i == 0 && hasOwnMoment(m))
	}
	if !plain || !hasOwnMoment(m) {
		return plain
	}
	return !slices.ContainsFunc(units, func(u Unit) bool {
		at := u.Moves[0].Stamp[0].At
		return !hasUsualLength(at.Min) || !hasUsualLength(at.Max)
	})
}

// hasUsualLength reports whether the time has as many digits as the present time. Scripts compare the texts of such
// times.
func hasUsualLength(t task.Time) bool { return t >= 1e9 && t < 1e10 }

// addForm adds a form in the notation of moving.lua.
func addForm(e *conn.Args, f *form) {
	m := f.first
	read := f.read()
	write := []string{"", "log", ""}
	for _, field := range f.shared {
		write = append(write, field.Name, field.Value)
	}
	stamped := len(write)
	for _, stamp := range m.Stamp {
		write = append(write, stamp.Name, "")
	}
	owned := len(write)
	for _, j := range f.own {
		write = append(write, m.Set[j].Name, "")
	}
	e.All = append(e.All, string(m.From), m.Round, m.Revision, destination(m), index.GroupCode(m.To))
	e.Add(linkKind(m), moment(m.Score), moment(m.NextDue), m.Note)
	e.Flag(m.Repair)
	e.Flag(m.Updates)
	addPositions(e, 2+len(f.own), m.Claim != "", m.Due != "", m.Limit != "", m.Unique != "", f.ownMoment)
	e.Add(read.place, read.revision, read.link)
	for _, n := range []int{stamped, owned, len(read.names), len(write), len(m.Stamp)} {
		e.Count(n)
	}
	e.Add(read.names...)
	e.Add(write...)
	for _, stamp := range m.Stamp {
		e.Add(moment(stamp.At))
	}
	e.Strings(m.Clear)
}

// A formRead says which properties a move needs. The first of its names stands for the key of the task. The other
// fields are the indexes of properties among the values, counted from 1, or "".
type formRead struct {
	names                 []string
	place, revision, link string
}

func (r *formRead) add(name string) (place string) {
	r.names = append(r.names, name)
	return strconv.Itoa(len(r.names) - 1)
}

func (f *form) read() formRead {
	m := f.first
	of := strconv.Itoa(m.Round) + ":"
	r := formRead{names: []string{"", "state", "round", "log", of + string(m.From), of + "claim"}}
	if m.From == task.Running {
		r.names = append(r.names, of+"executed", of+"started")
	}
	if m.Verb != rules.VerbRequire && (m.From == task.Open || destination(m) == string(task.Open) || m.Repair) {
		r.place = r.add("place")
	}
	if m.Revision != "" || string(m.From) == destination(m) {
		r.revision = r.add("revision")
	}
	switch linkKind(m) {
	case "ends":
		r.link = r.add("links")
	case "spoils":
		r.link = r.add("dependents")
	}
	if m.Removes() {
		r.add("endings")
	}
	return r
}

// addPositions adds the number of arguments of a move, and the position of each argument that a move may have after the
// first n arguments. Only the last of them is a pair.
func addPositions(e *conn.Args, n int, has ...bool) {
	number := len(e.All)
	e.Count(0)
	for i, it := range has {
		if !it {
			e.Add("")
			continue
		}
		e.Count(n + 1)
		n++
		if i == len(has)-1 {
			n++
		}
	}
	e.All[number] = n
}

// addMove adds a move of the form f.
func addMove(e *conn.Args, m *rules.Move, f *form) {
	e.All = append(e.All, m.ID, index.Pair(m.Group, m.Queue))
	for _, j := range f.own {
		e.Add(m.Set[j].Value)
	}
	for _, fence := range []string{m.Claim, m.Due, m.Limit, m.Unique} {
		if fence != "" {
			e.Add(fence)
		}
	}
	if f.ownMoment {
		at := m.Stamp[0].At
		if !hasUsualLength(at.Min) || !hasUsualLength(at.Max) {
			e.Add(at.Min.String(), upperBound(at.Max))
			return
		}
		for _, t := range []task.Time{at.Min, at.Max} {
			e.Add(strconv.FormatFloat(float64(t), 'f', 6, 64))
		}
	}
}
