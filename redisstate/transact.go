package redisstate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tdf-framework/tdf"
)

// Limits for one call of a script, so that other clients of Redis wait only a few milliseconds.
const (
	maxTasksPerCall = 1000
	maxBytesPerCall = 4 << 20
)

// A Unit is a set of moves and new tasks that happen together or not at all.
type Unit struct {
	Moves    []tdf.Move
	Open     []tdf.Properties
	NewGroup string // a group that must not have tasks yet; if it has, the unit fails with [ErrGroupTaken]; "" sets no condition
}

// An Outcome is the result of a unit.
type Outcome struct {
	IDs []int64 // the ids of the new tasks
	Err error   // *[tdf.StateError], [ErrGroupTaken], or the reason why Redis refused the unit; nil if the unit succeeded
}

// Apply carries out units, in as few calls as the limits allow. Each unit succeeds or fails on its own. A unit that
// fails changes nothing. The tasks' logs name the given user or component. If Apply returns an error, it also returns
// the outcomes of the first units, for which Redis has answered. No task may occur twice.
func (s *Store) Apply(ctx context.Context, who string, units ...Unit) ([]Outcome, error) {
	return s.apply(ctx, who, units, true)
}

func (s *Store) apply(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	var all []Outcome
	for len(units) > 0 {
		n := unitBatch(units)
		outcomes, err := s.applyBatch(ctx, who, units[:n], once)
		all = append(all, outcomes...)
		if err != nil {
			return all, err
		}
		units = units[n:]
	}
	return all, nil
}

// applyBatch carries out units whose number and size are limited: moves of the most frequent forms with move.lua, the
// other units with transact.lua.
func (s *Store) applyBatch(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	if err := s.Ready(ctx); err != nil { // check Redis before wakeKeys reads which managers to wake
		return nil, err
	}
	b := unitsDone{units: units, outcomes: make([]Outcome, len(units)), done: make([]bool, len(units))}
	forms, others := formsOf(units)
	for _, f := range forms {
		err := b.do(&s.pace, f.units, func(units []Unit) ([]Outcome, error) { return s.move(ctx, who, f, units, once) })
		if err != nil {
			return b.first(), err
		}
	}
	err := b.do(&s.pace, others, func(units []Unit) ([]Outcome, error) { return s.transact(ctx, who, units, once) })
	return b.first(), err
}

// unitsDone holds the outcomes of units that are carried out in another order.
type unitsDone struct {
	units    []Unit
	outcomes []Outcome
	done     []bool // which units have an outcome
}

// do carries out the units at the given positions, in as many calls as Redis has time for.
func (b *unitsDone) do(p *pace, positions []int, call func(units []Unit) ([]Outcome, error)) error {
	for len(positions) > 0 {
		n := min(len(positions), p.next())
		units := make([]Unit, n)
		for i, at := range positions[:n] {
			units[i] = b.units[at]
		}
		outcomes, err := call(units)
		for i, o := range outcomes {
			b.outcomes[positions[i]], b.done[positions[i]] = o, true
		}
		if err != nil {
			return err
		}
		p.did(len(outcomes), n)
		positions = positions[len(outcomes):]
	}
	return nil
}

// first returns the outcomes of the first units, up to the first unit without an outcome.
func (b *unitsDone) first() []Outcome {
	if n := slices.Index(b.done, false); n >= 0 {
		return b.outcomes[:n]
	}
	return b.outcomes
}

// A pace limits the number of units in the next call. If Redis had no time for all units of the last calls, the next
// call contains fewer. The zero pace sets the highest limit.
type pace struct{ most atomic.Int64 }

const slowestPace = 16

func (p *pace) next() int {
	if most := p.most.Load(); most > 0 {
		return int(most)
	}
	return maxTasksPerCall
}

// did records the number of units that Redis has carried out in a call.
func (p *pace) did(done, of int) {
	if done < of {
		p.most.Store(int64(max(done, slowestPace)))
	} else {
		p.most.Store(int64(min(2*p.next(), maxTasksPerCall)))
	}
}

// unitBatch returns how many of the units fit into the next call. It returns at least 1.
func unitBatch(units []Unit) int {
	return batch(len(units), bound{maxTasksPerCall, func(i int) int { return len(units[i].Moves) + len(units[i].Open) }},
		bound{maxBytesPerCall, func(i int) int { return units[i].size() }})
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

// transact makes one call, and returns the outcomes of the first units. If the call takes too long, the script leaves
// out the last units. It carries out at least one. If once is true, Redis recognizes a repeated call by its call slot.
// Otherwise, it recognizes repeated moves by their claims.
func (s *Store) transact(ctx context.Context, who string, units []Unit, once bool) ([]Outcome, error) {
	script := s.scripts.transact
	for i := range units {
		if len(units[i].Open) > 0 {
			script = s.scripts.transactOpening
		}
	}
	lists := s.callLists(ctx, units)
	reply, err := s.callOnce(ctx, script, s.transactKeys(lists), once, func(e *encoder) {
		e.add(s.keys.taskPrefix(), s.keys.groupPrefix(), s.keys.updatesPrefix(), s.keys.followPrefix(), who)
		e.callLists(lists)
		e.units(s.keys.ns, units)
	})
	if err != nil {
		return nil, err
	}
	return outcomes(units, reply)
}

// outcomes parses the answer of transact. It stops at the first unit for which Redis had no time.
func outcomes(units []Unit, reply any) ([]Outcome, error) {
	lines := strings.Split(fmt.Sprint(reply), "\n")
	if len(lines) != len(units) || lines[0] == "~" {
		return nil, fmt.Errorf("redis: the script answered %d of %d units", len(lines), len(units))
	}
	all := make([]Outcome, 0, len(units))
	for i, line := range lines {
		if line == "~" {
			break
		}
		all = append(all, outcome(&units[i], line))
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
	if line == "=" {
		return Outcome{Err: ErrGroupTaken}
	}
	if reason, ok := strings.CutPrefix(line, "!"); ok {
		return Outcome{Err: errors.New(reason)}
	}
	found := parseFound(line)
	for i := range u.Moves {
		if u.Moves[i].ID == found.ID {
			found.Verb = u.Moves[i].Verb
		}
	}
	return Outcome{Err: found}
}

// parseFound parses '-id round state'. A script returns this line if a task is not in the expected state.
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

// notDue is the fence of a Move that requires that `due` does not contain the task.
const notDue = "-1"

// dueScore returns a score as the text of a fence, without rounding.
func dueScore(score float64) string {
	if math.IsInf(score, 0) {
		return ""
	}
	return strconv.FormatFloat(score, 'f', -1, 64)
}
