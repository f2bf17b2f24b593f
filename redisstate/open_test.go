package redisstate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func ofGroup(group string, n int) []tdf.Properties {
	d := define("x")
	d.Group = group
	all := make([]tdf.Properties, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func TestOpenGroup(t *testing.T) {
	s := newStore(t)
	ids, err := s.OpenAll(t.Context(), "manager", "g", ofGroup("g", 1500)...)
	expect.MustTrue(t, err == nil && len(ids) == 1500 && ids[0].ID == 1 && ids[1499].ID == 1500, len(ids), "ids", err)
	before := dump(t, s)
	if ids, err := s.OpenAll(t.Context(), "manager", "g", ofGroup("g", 1)...); !errors.Is(err, ErrGroupTaken) || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
	is(t, s, before)

	mustOpen(t, s, ofGroup("g", 1)...)
	expect.Result(s.OpenAll(t.Context(), "manager", "", define("of no group"))).OK(t)
	expect.Len(t, expect.Result(s.OpenAll(t.Context(), "manager", "g")).Value(t), 0)
}

// If a unit is refused because its group already has tasks, the other units of the call are still carried out.
func TestGroupTakenConcernsOneUnit(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, ofGroup("old", 1)...)
	outcomes, err := s.Apply(t.Context(), "manager", Unit{Open: ofGroup("old", 1), NewGroup: "old"},
		Unit{Open: ofGroup("new", 2), NewGroup: "new"}, Unit{Open: ofGroup("old", 1)})
	must(t, err)
	expect.Equal(t, fmt.Sprint(outcomes), "[{[] [] "+ErrGroupTaken.Error()+" ["+ErrGroupTaken.Error()+"]} {[2 3] [] <nil> []} {[4] [] <nil> []}]")
	mustBeSound(t, s)
}

func TestOpenGroupAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		var all sync.WaitGroup
		opened := make([]string, 8)
		for i := range opened {
			all.Go(func() {
				ids, err := s.OpenAll(t.Context(), "manager", "g", ofGroup("g", 3)...)
				if err == nil {
					opened[i] = fmt.Sprint(ids)
				} else if !errors.Is(err, ErrGroupTaken) {
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
	changes := []func(*tdf.Properties){
		func(*tdf.Properties) {},
		func(d *tdf.Properties) { d.Meta = "m" },
		func(d *tdf.Properties) { d.Meta, d.FailOn = "n", tdf.FailOnAny },
		func(d *tdf.Properties) { d.Group = "g" },
		func(d *tdf.Properties) { d.Group, d.StartAfter = "h", 4e9 },
		func(d *tdf.Properties) { d.EndBefore = 5e9 },
		func(d *tdf.Properties) { d.Input = "other" },
	}
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	rapid.Check(t, func(r *rapid.T) {
		var all []tdf.Properties
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(changes)-1), 1, 6).Draw(r, "changes") {
			d := define("x")
			changes[i](&d)
			all = append(all, d)
		}
		ids := mustOpen(t, s, all...)
		for i, id := range ids {
			if got := task(t, s, id).Properties; !reflect.DeepEqual(got, all[i]) {
				r.Fatalf("task %d has %+v, want %+v", i, got, all[i])
			}
		}
	})
	mustBeSound(t, s)
}
