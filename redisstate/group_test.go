package redisstate_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/groups"
)

func grouped(group string) task.Properties {
	d := define("x")
	d.Group = group
	return d
}

// No script opens a task in a closed group. A task without a group and other groups are not concerned.
func TestClosedGroup(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, grouped("g"), grouped("h"))
	must(t, s.Groups.CloseGroup(t.Context(), "g"))
	must(t, s.Groups.CloseGroup(t.Context(), "g"))
	before := dump(t, s)
	m := expect.Result(rules.Cancel(read(t, s, ids[1]))).Value(t)
	_, plain := s.Open(t.Context(), "m", define("x"), grouped("g"))
	_, unique := s.OpenAll(t.Context(), "m", "", func() task.Properties { d := grouped("g"); d.Unique = "k"; return d }())
	refusals := []error{plain, unique, transaction(t, s, []task.Properties{grouped("g"), grouped("h"), grouped("g")}, m).Err}
	for i, err := range refusals {
		e := new(task.GroupError)
		expect.MustTrue(t, errors.As(err, &e), "way", i, "to open a task", err)
		expect.Equal(t, e.Group, "g", "way", i)
		expect.FailsWith(t, err, task.ErrGroupClosed, "way", i)
	}
	expect.Equal(t, changed(t, before, dump(t, s)), "")
	expect.Len(t, transaction(t, s, []task.Properties{grouped("g"), define("x"), grouped("g")}).Refused, 1, "the reasons are not listed once")
	outcomes, err := s.Apply(t.Context(), "m", redisstate.Unit{Open: []task.Properties{grouped("h")}}, redisstate.Unit{Open: []task.Properties{grouped("g")}}, redisstate.Unit{Open: []task.Properties{grouped("g")}})
	expect.NoError(t, err)
	expect.NoError(t, outcomes[0].Err)
	expect.MustTrue(t, outcomes[1].Err != nil, "a closed group concerns another unit", outcomes, err)
	expect.Fails(t, outcomes[2].Err, "")
	mustOpen(t, s, define("x"), grouped("h"))
	mustMove(t, s, ids[0], rules.Cancel)
	m, err = rules.Reopen(read(t, s, ids[0]))
	mustApply(t, s, m, err) // a retry is no opening
	must(t, s.Groups.ExtendGroup(t.Context(), "g"))
	mustOpen(t, s, grouped("g"))
	mustBeSound(t, s)
}

// When the last task of a closed group is removed, the mark vanishes.
func TestMarksVanish(t *testing.T) {
	s := newStore(t)
	expect.FailsWith(t, s.Groups.CloseGroup(t.Context(), "g"), task.ErrGroupEmpty, "a group without tasks")
	must(t, s.Groups.ExtendGroup(t.Context(), "g"))
	ids := mustOpen(t, s, grouped("g"), grouped("g"), grouped("h"))
	must(t, s.Groups.CloseGroup(t.Context(), "g"))
	must(t, s.Groups.CloseGroup(t.Context(), "h"))
	for i, id := range ids[:2] {
		expect.Equal(t, s.Conn.Redis.HLen(t.Context(), s.Keys.Groups()).Val(), 2, "marks before task", i, "is removed")
		mustMove(t, s, id, rules.Cancel)
		mustMove(t, s, id, rules.Remove)
	}
	expect.Equal(t, fmt.Sprint(s.Conn.Redis.HKeys(t.Context(), s.Keys.Groups()).Val()), "[h]", "marks of")
	mustOpen(t, s, grouped("g"))
}

// Of many units, one decides the completion of a group. Before, the group must be closed and complete.
func TestDecide(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ids := mustOpen(t, s, grouped("g"), grouped("g"))
		decide := func(units int, want ...error) {
			t.Helper()
			before := dump(t, s)
			all := make([]redisstate.Unit, units)
			for i := range all {
				all[i] = redisstate.Unit{Decide: "g", Open: []task.Properties{grouped("next")}}
			}
			outcomes := expect.Result(s.Apply(t.Context(), "m", all...)).Value(t)
			for i, o := range outcomes {
				if want[i] == nil {
					expect.NoError(t, o.Err, "unit", i)
				}
				expect.FailsWith(t, o.Err, want[i], "unit", i)
			}
			diff := changed(t, before, dump(t, s))
			if want[0] != nil {
				expect.Equal(t, diff, "")
			}
		}
		decide(1, task.ErrGroupNotClosed)
		must(t, s.Groups.CloseGroup(t.Context(), "g"))
		for _, id := range ids {
			decide(1, task.ErrGroupUnfinished)
			mustMove(t, s, id, rules.Cancel)
		}
		decide(2, nil, task.ErrGroupDecided)
		decide(1, task.ErrGroupDecided)
		expect.FailsWith(t, s.Groups.ExtendGroup(t.Context(), "g"), task.ErrGroupDecided)
		must(t, s.Groups.CloseGroup(t.Context(), "g"))
		expect.Result(s.Open(t.Context(), "m", grouped("g"))).FailsWith(t, task.ErrGroupDecided)
		mark := expect.Result(s.Groups.GroupMark(t.Context(), "g")).Value(t)
		expect.Equal(t, mark.Mark, task.GroupDecided)
		expect.Compare(t, mark.Since, ">=", 1e9)
		expect.Result(s.Groups.GroupMark(t.Context(), "next")).Is(t, groups.Mark{})
		mustBeSound(t, s)
	})
}

// A key of another type is named. Calls without groups, and moves of tasks, do not need it.
func TestMarksOfAnotherType(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, grouped("g"))
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Groups(), "text", 0).Err())
	_, opening := s.Open(t.Context(), "m", grouped("g"))
	for i, err := range []error{opening, s.Groups.CloseGroup(t.Context(), "g"), s.Groups.ExtendGroup(t.Context(), "g"), transaction(t, s, []task.Properties{grouped("g")}).Err} {
		expect.Fails(t, err, s.Keys.Groups()+" is not a hash", "call", i)
	}
	mustOpen(t, s, define("x"))
	mustMove(t, s, ids[0], rules.Cancel)
	mustMove(t, s, ids[0], rules.Remove)
}

// Opening and moving tasks without groups sends no command for groups, and neither does removing if no group is closed.
func TestGroupsCostNothingIfUnused(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	mustOpen(t, s, define("first")) // it also looks whether the namespace is new
	before := commandCalls(t, s, "hget")
	ids := mustOpen(t, s, define("a"), define("b"))
	o := transaction(t, s, []task.Properties{define("c")}, rules.Require(read(t, s, ids[0])))
	expect.MustTrue(t, o.Err == nil, o.Err)
	if n := commandCalls(t, s, "hget") - before; n > 2 { // the answers of the call slot
		t.Errorf("%d HGET", n)
	}
	ids = mustOpen(t, s, grouped("g"), grouped("g"), grouped("h"))
	mustMove(t, s, ids[0], rules.Cancel)
	mustMove(t, s, ids[0], rules.Remove)
	expect.Equal(t, commandCalls(t, s, "hdel"), 0, "HDEL")
}

func ofGroup(group string, n int) []task.Properties {
	d := define("x")
	d.Group = group
	all := make([]task.Properties, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func TestOpenGroup(t *testing.T) {
	s := newStore(t)
	ids := expect.Result(s.OpenAll(t.Context(), "manager", redisstate.NewGroup("g"), ofGroup("g", 1500)...)).Value(t)
	expect.MustLen(t, ids, 1500)
	expect.MustEqual(t, ids[0].ID, 1)
	expect.MustEqual(t, ids[1499].ID, 1500)
	before := dump(t, s)
	if ids, err := s.OpenAll(t.Context(), "manager", redisstate.NewGroup("g"), ofGroup("g", 1)...); !errors.Is(err, redisstate.ErrGroupTaken) || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
	is(t, s, before)

	mustOpen(t, s, ofGroup("g", 1)...)
	expect.Result(s.OpenAll(t.Context(), "manager", "", define("of no group"))).OK(t)
	expect.Len(t, expect.Result(s.OpenAll(t.Context(), "manager", redisstate.NewGroup("g"))).Value(t), 0)
}

// After a group was extended, it gets no task of those who began to open it before, in any way: not in the open group,
// and not when the extension has closed it.
func TestExtendedGroup(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		open := func(on redisstate.Condition, all ...task.Properties) error {
			_, err := s.OpenAll(t.Context(), "m", on, all...)
			return err
		}
		for _, g := range []string{"plain", "unique", "graph"} {
			rest := ofGroup(g, map[string]int{"plain": 300, "unique": 1, "graph": 2}[g])
			switch g {
			case "unique":
				rest[0].Unique = "k"
			case "graph":
				rest[1].After = &task.Dependencies{Places: []int{0}}
			}
			expect.FailsWith(t, s.Groups.BeginExtension(t.Context(), g), task.ErrGroupEmpty)
			expect.NoError(t, open(redisstate.NewGroup(g), ofGroup(g, 1)...))
			expect.NoError(t, open(redisstate.Unextended(g), ofGroup(g, 1)...))
			must(t, s.Groups.BeginExtension(t.Context(), g))
			before := dump(t, s)
			expect.FailsWith(t, open(redisstate.Unextended(g), rest...), redisstate.ErrGroupExtended, g)
			is(t, s, before)
			expect.Equal(t, expect.Result(s.Groups.GroupMark(t.Context(), g)).Value(t), groups.Mark{})
			expect.NoError(t, open("", ofGroup(g, 1)...))
			must(t, s.Groups.CloseGroup(t.Context(), g))
			must(t, s.Groups.BeginExtension(t.Context(), g))
			expect.FailsWith(t, open(redisstate.Unextended(g), rest...), task.ErrGroupClosed, g)
			must(t, s.Groups.ExtendGroup(t.Context(), g))
			expect.FailsWith(t, open(redisstate.Unextended(g), rest...), redisstate.ErrGroupExtended, g)
			expect.NoError(t, open("", rest...))
		}
		mustBeSound(t, s)
	})
}

// If a unit is refused because its group already has tasks, the other units of the call are still carried out.
func TestGroupTakenConcernsOneUnit(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, ofGroup("old", 1)...)
	outcomes, err := s.Apply(t.Context(), "manager", redisstate.Unit{Open: ofGroup("old", 1), If: redisstate.NewGroup("old")},
		redisstate.Unit{Open: ofGroup("new", 2), If: redisstate.NewGroup("new")}, redisstate.Unit{Open: ofGroup("old", 1)})
	must(t, err)
	expect.Equal(t, fmt.Sprint(outcomes), "[{[] [] "+redisstate.ErrGroupTaken.Error()+" ["+redisstate.ErrGroupTaken.Error()+"]} {[2 3] [] <nil> []} {[4] [] <nil> []}]")
	mustBeSound(t, s)
}

func TestOpenGroupAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		var all sync.WaitGroup
		opened := make([]string, 8)
		for i := range opened {
			all.Go(func() {
				ids, err := s.OpenAll(t.Context(), "manager", redisstate.NewGroup("g"), ofGroup("g", 3)...)
				if err == nil {
					opened[i] = fmt.Sprint(ids)
				} else if !errors.Is(err, redisstate.ErrGroupTaken) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		expect.Equal(t, strings.Join(opened, ""), "[{1 false} {2 false} {3 false}]", "opened")
	})
}

// Tasks of one call keep their own values, whether they have the same properties, the same group and start, or not.
func TestOpenTasksThatDiffer(t *testing.T) {
	t.Parallel()
	changes := []func(*task.Properties){
		func(*task.Properties) {},
		func(d *task.Properties) { d.Meta = "m" },
		func(d *task.Properties) { d.Meta, d.FailOn = "n", task.FailOnAny },
		func(d *task.Properties) { d.Group = "g" },
		func(d *task.Properties) { d.Group, d.StartAfter = "h", 4e9 },
		func(d *task.Properties) { d.EndBefore = 5e9 },
		func(d *task.Properties) { d.Input = "other" },
	}
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	rapid.Check(t, func(r *rapid.T) {
		var all []task.Properties
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(changes)-1), 1, 6).Draw(r, "changes") {
			d := define("x")
			changes[i](&d)
			all = append(all, d)
		}
		ids := mustOpen(t, s, all...)
		for i, id := range ids {
			if got := read(t, s, id).Properties; !reflect.DeepEqual(got, all[i]) {
				r.Fatalf("task %d has %+v, want %+v", i, got, all[i])
			}
		}
	})
	mustBeSound(t, s)
}
