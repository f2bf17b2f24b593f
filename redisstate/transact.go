package redisstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Limits for one call of a script, so that other clients of Redis wait only a few milliseconds.
const (
	maxTasksPerCall = 1000
	maxBytesPerCall = 4 << 20
)

// OpeningPrefix and the name of a group are the name of the record of an opening (manager.OpenGroup). No stage has such
// a name.
const OpeningPrefix = "/"

// A StageChange changes the record of a stage, as part of a [Unit]. If the stage has another record than From, the unit
// fails with [ErrRecordChanged].
type StageChange struct {
	Stage    string // the name of its group
	From, To task.StageRecord

	// Definitions is the name of stored definitions, or "". If Chunks is above 0, the definitions must have this number
	// of chunks, and the change makes them permanent. Otherwise, it removes the chunk Opened.
	Definitions    string
	Chunks, Opened int
}

// A PeriodicChange changes the record of a periodic, as part of a [Unit]. The text "" means that there is no record.
type PeriodicChange struct{ Name, From, To string }

// A Unit is a set of moves and new tasks that happen together or not at all.
type Unit struct {
	Moves  []rules.Move
	Open   []task.Properties
	If     Condition    // without it, the unit fails with [ErrGroupTaken] or [ErrGroupExtended]
	Decide string       // a group that must be complete and undecided; the unit marks it as decided; "" for none
	Stage  *StageChange // a change of the record of a pipeline's stage; nil for none

	Periodic *PeriodicChange // a change of the record of a periodic; the unit has a call of its own

	// ByRound means that the round which the first move reports opens the tasks. They count for max_tasks, and can be
	// opened in the group of its task, even if the group is closed.
	ByRound bool
}

// An Outcome is the result of a unit.
type Outcome struct {
	IDs []int64 // the ids of the new tasks
	// whether the task with the id already existed, and held the unique key; nil if there is no such task
	Existing []bool
	Err      error // the first of Refused; nil if the unit succeeded
	// *[rules.StateError], *[task.UniqueError], *[task.GroupError], *[task.TasksLimitError], [ErrGroupTaken],
	// [ErrGroupExtended], [ErrRecordChanged], [ErrNoDefinitions], [ErrUnlinked], or other reasons why Redis refused the
	// unit
	Refused []error
}

// Held returns the number of new tasks that were not opened, because other tasks hold their unique keys.
func (o Outcome) Held() int {
	n := 0
	for _, existing := range o.Existing {
		if existing {
			n++
		}
	}
	return n
}

// RefusedWith returns cause if it is one of the reasons why the unit was refused, because the other reasons may follow
// from it. Otherwise, it returns Err.
func (o Outcome) RefusedWith(cause error) error {
	if slices.ContainsFunc(o.Refused, func(err error) bool { return errors.Is(err, cause) }) {
		return cause
	}
	return o.Err
}

// Apply carries out units, in as few calls as the limits allow. Each unit succeeds or fails on its own. A unit that
// fails changes nothing. The tasks' logs name the given user or component. If Apply returns an error, it also returns
// the outcomes of the first units: those for which Redis had already answered. So if only the confirmation of replicas
// is missing, it returns the outcomes of the call that lacks it. No task may occur twice.
func (s *Store) Apply(ctx context.Context, who string, units ...Unit) ([]Outcome, error) {
	return s.apply(ctx, who, units, true)
}

func (s *Store) apply(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	var all []Outcome
	for i := range units {
		if len(units[i].Open) == 0 {
			continue
		}
		var err error
		if units[i].Open, err = s.keepApart(ctx, units[i].Open); err != nil {
			return nil, err
		}
	}
	for len(units) > 0 {
		if err := s.Conn.Ready(ctx); err != nil { // check Redis before wakeKeys reads which managers to wake
			return all, err
		}
		n, oneForm := nextCall(units[:unitBatch(units)])
		if !conn.InRequest(ctx) { // the calls of a repeated request must be the same
			n = min(n, s.pace.next())
		}
		if err := s.nameUnits(ctx, units[:n]); err != nil {
			return all, err
		}
		carryOut := s.transact
		if oneForm {
			carryOut = s.move
		}
		outcomes, err := carryOut(ctx, who, units[:n], once)
		all = append(all, outcomes...)
		if !conn.CallIsRepeated(ctx) {
			s.countUnits(units, outcomes)
		}
		if err != nil {
			return all, err
		}
		s.pace.recordUnits(len(outcomes), n)
		units = units[len(outcomes):]
	}
	return all, nil
}

// A pace limits the number of units in the next call. If Redis had no time for all units of the last calls, the next
// call contains fewer units. The zero pace sets the highest limit.
type pace struct{ most atomic.Int64 }

const slowestPace = 16

func (p *pace) next() int {
	if most := p.most.Load(); most > 0 {
		return int(most)
	}
	return maxTasksPerCall
}

// recordUnits records the number of units that Redis has carried out in a call.
func (p *pace) recordUnits(done, of int) {
	if done < of {
		p.most.Store(int64(max(done, slowestPace)))
	} else {
		p.most.Store(int64(min(2*p.next(), maxTasksPerCall)))
	}
}

// unitBatch returns how many of the units fit into the next call. It returns at least 1.
func unitBatch(units []Unit) int {
	return conn.Batch(len(units), conn.Bound{Limit: maxTasksPerCall, Amount: func(i int) int {
		return len(units[i].Moves) + len(units[i].Open)
	}},
		conn.Bound{Limit: maxBytesPerCall, Amount: func(i int) int { return units[i].Size() }})
}

// OneApply reports whether one call of Apply can carry out these units: no task occurs twice, and they are not too
// large.
func OneApply(units []Unit) bool {
	seen := map[int64]bool{}
	for i := range units {
		for j := range units[i].Moves {
			id := units[i].Moves[j].ID
			if seen[id] {
				return false
			}
			seen[id] = true
		}
	}
	return unitBatch(units) == len(units)
}

// onlyOpens reports whether the unit opens tasks that are not follow-ups. Follow-ups are opened together with a move or
// a decision, or with the decision that a stage of a pipeline is empty. They neither wait for memory nor count for
// max_tasks: the manager could not archive their task or group.
func (u Unit) onlyOpens() bool {
	decidesEmpty := u.Stage != nil && u.If != "" && u.If != NewGroup(strings.TrimPrefix(u.Stage.Stage, OpeningPrefix))
	return len(u.Open) > 0 && len(u.Moves) == 0 && u.Decide == "" && !decidesEmpty
}

// flags returns the flags of the unit in the notation of transact.lua.
func (u *Unit) flags() (flags string) {
	if slices.ContainsFunc(u.Open, func(d task.Properties) bool { return d.HasPlaces() }) {
		flags = "r"
	}
	if u.onlyOpens() || u.ByRound {
		flags += "c"
	}
	if u.ByRound {
		flags += "m"
	}
	if u.Periodic != nil && len(u.Open) > 0 {
		flags += "i"
	}
	return flags
}

func (u Unit) changesRecord() bool { return u.Stage != nil || u.Periodic != nil }

// sizeOf returns the bytes of all values in the units.
func sizeOf(units []Unit) int {
	bytes := 0
	for i := range units {
		bytes += units[i].Size()
	}
	return bytes
}

// Size returns the bytes of all values in the unit.
func (u *Unit) Size() int {
	bytes := 0
	for i := range u.Moves {
		for _, f := range u.Moves[i].Set {
			bytes += len(f.Value)
		}
	}
	for i := range u.Open {
		bytes += bytesOf(&u.Open[i])
	}
	return bytes
}

// bytesOf returns the bytes of the long values of a new task.
func bytesOf(d *task.Properties) int {
	n := len(d.Input) + len(d.Meta) + len(d.Source) + d.DependencyBytes()
	for _, b := range d.Blobs {
		n += len(b) + 1
	}
	return n
}

// transact makes one call, and returns the outcomes of the units that were carried out: at least one. If the call takes
// too long, the script leaves out the last units. If once is true, Redis recognizes a repeated call by its call slot.
// Otherwise, it recognizes repeated moves by their claims.
func (s *Store) transact(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	script := lua.Transact
	for i := range units {
		if len(units[i].Open) > 0 {
			script = lua.TransactOpening
		}
	}
	maxTasks := ""
	var unfinished []string
	if slices.ContainsFunc(units, func(u Unit) bool { return u.Decide != "" }) {
		unfinished = index.UnfinishedCodes()
	}
	switch {
	case slices.ContainsFunc(units, func(u Unit) bool {
		return u.onlyOpens() || openerOf(ctx) != nil && len(u.Open) > 0 && !u.ByRound
	}):
		var err error
		if maxTasks, err = s.maxTasks(ctx, !slices.ContainsFunc(units, Unit.changesRecord)); err != nil {
			return nil, err
		}
	// They do not wait for memory, because a result must not wait.
	case slices.ContainsFunc(units, func(u Unit) bool { return u.ByRound }):
		settings, _, err := s.known(ctx, roomForOpens)
		if err != nil {
			return nil, err
		}
		maxTasks = limitText(settings)
	}
	lists := s.callLists(ctx, units)
	keys := append(s.transactKeys(lists), s.countedLists(maxTasks)...)
	if units[0].Periodic != nil {
		keys[recordsKey] = s.Keys.Periodic()
	}
	reply, err := s.Conn.CallOnce(ctx, script, keys, once, outcomesOf(len(units)), func(e *conn.Args) {
		e.Add(s.Keys.TaskPrefix(), s.Keys.GroupPrefix(), who, s.Keys.UpdatesPrefix(), s.Keys.FollowPrefix(), maxTasks)
		e.Count(index.GroupCode(task.Open))
		addHoldingStates(e, slices.ContainsFunc(units, Unit.needsKeys))
		addArchivingStates(e, slices.ContainsFunc(units, Unit.movesFinished))
		e.Strings(unfinished)
		addCallLists(e, lists)
		addUnits(e, s.Keys, units)
		e.Add(strconv.FormatInt(s.Conn.IDs.Highest(), 10))
	})
	if conn.Unanswered(err) {
		return nil, err
	}
	all := outcomes(units, reply)
	for i := range all {
		s.got(all[i].IDs)
	}
	return all, err
}

// outcomesOf is the form of the answer of transact.lua or move.lua for n units. Redis has time for at least one unit.
func outcomesOf(n int) conn.ReplyForm {
	lines := conn.LinesOf(n, n)
	return func(reply any) bool { return lines(reply) && !strings.HasPrefix(conn.Text(reply), "~") }
}

// outcomes parses the answer of transact.lua or move.lua. It stops at the first unit for which Redis had no time.
func outcomes(units []Unit, reply any) []Outcome {
	lines := strings.Split(conn.Text(reply), "\n")
	all := make([]Outcome, 0, len(units))
	for i, line := range lines {
		if line == "~" {
			break
		}
		all = append(all, outcome(&units[i], line))
	}
	return all
}

func outcome(u *Unit, line string) Outcome {
	if ids, ok := strings.CutPrefix(line, "+"); ok {
		return opened(len(u.Open), ids)
	}
	var o Outcome
	for reason := range strings.SplitSeq(line, "\t") {
		o.Refused = append(o.Refused, parseRefusal(u, reason))
	}
	o.Err = o.Refused[0]
	return o
}

// parseRefusal parses one reason why a script has refused a unit.
func parseRefusal(u *Unit, reason string) error {
	if taken, ok := strings.CutPrefix(reason, "*"); ok {
		e := &task.UniqueError{}
		fmt.Sscan(taken, &e.ID, &e.Holder)
		return e
	}
	if strings.HasPrefix(reason, "^") {
		return parseTooMany(reason)
	}
	if requirement, ok := strings.CutPrefix(reason, "$"); ok {
		owner, name, _ := strings.Cut(requirement, " ")
		return tooManyRequirements(owner, name)
	}
	if reason == "=" {
		return u.If.unmet()
	}
	if mark, ok := strings.CutPrefix(reason, "#"); ok {
		mark, group, _ := strings.Cut(mark, " ")
		return &task.GroupError{Group: group, Err: task.GroupMark(mark).CheckOpening()}
	}
	if mark, ok := strings.CutPrefix(reason, "%"); ok {
		mark, group, _ := strings.Cut(mark, " ")
		return &task.GroupError{Group: group, Err: task.GroupMark(mark).CheckDecision(true)}
	}
	if record, ok := strings.CutPrefix(reason, "@"); ok {
		return fmt.Errorf("%w: it is %.100q", ErrRecordChanged, record)
	}
	if reason == "?" {
		return ErrNoDefinitions
	}
	if text, ok := strings.CutPrefix(reason, "&"); ok {
		return fmt.Errorf("%s: %w", text, ErrUnlinked)
	}
	if text, ok := strings.CutPrefix(reason, "!"); ok {
		return errors.New(text)
	}
	found := parseFound(reason)
	for i := range u.Moves {
		if u.Moves[i].ID == found.ID {
			found.Verb = u.Moves[i].Verb
		}
	}
	return found
}

// opened parses 'first i=id …': the id of the first new task, and the ids of tasks that already existed.
func opened(n int, line string) Outcome {
	words := strings.Fields(line)
	o := Outcome{IDs: make([]int64, n)}
	var next int64
	if len(words) > 0 {
		next, _ = strconv.ParseInt(words[0], 10, 64)
		words = words[1:]
	}
	for _, word := range words {
		position, id, _ := strings.Cut(word, "=")
		if i, err := strconv.Atoi(position); err == nil && i >= 1 && i <= n {
			o.IDs[i-1], _ = strconv.ParseInt(id, 10, 64)
			o.Existing = append(o.Existing, make([]bool, n-len(o.Existing))...)
			o.Existing[i-1] = true
		}
	}
	for i := range o.IDs {
		if o.Existing == nil || !o.Existing[i] {
			o.IDs[i], next = next, next+1
		}
	}
	return o
}

// parseFound parses '-id round state' or '-id round,revision state'. A script returns this line if a task is not in the
// expected state.
func parseFound(line string) *rules.StateError {
	e := &rules.StateError{}
	words := strings.SplitN(strings.TrimPrefix(line, "-"), " ", 3)
	if len(words) == 3 {
		e.ID, _ = strconv.ParseInt(words[0], 10, 64)
		round, revision, _ := strings.Cut(words[1], ",")
		e.Round, _ = strconv.Atoi(round)
		e.Revision, _ = strconv.Atoi(revision)
		e.State = task.State(words[2])
	}
	return e
}

// nameUnits is like [programs.Archives.NameDefinitions], for a call that carries out units.
func (s *Store) nameUnits(ctx context.Context, units []Unit) error {
	sums := map[string]bool{}
	for i := range units {
		for j := range units[i].Open {
			sums[task.StoredProgram(units[i].Open[j].Source)] = true
		}
		for j := range units[i].Moves {
			sums[units[i].Moves[j].NamedProgram()] = true
		}
	}
	return s.Programs.NamePrograms(ctx, sums)
}
