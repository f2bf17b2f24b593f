package redisstate

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf"
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
	onEach(t, func(t *testing.T, s *Store) {
		ids, err := s.OpenGroup(t.Context(), "manager", ofGroup("g", 1500)...)
		if err != nil || len(ids) != 1500 || ids[0] != 1 || ids[1499] != 1500 {
			t.Fatalf("%d ids, %v", len(ids), err)
		}
		before := dump(t, s)
		if ids, err := s.OpenGroup(t.Context(), "manager", ofGroup("g", 1)...); !errors.Is(err, ErrGroupTaken) || len(ids) != 0 {
			t.Errorf("%v, %v", ids, err)
		}
		is(t, s, before)

		mustOpen(t, s, ofGroup("g", 1)...)
		if _, err := s.OpenGroup(t.Context(), "manager", define("of no group")); err != nil {
			t.Error(err)
		}
		if ids, err := s.OpenGroup(t.Context(), "manager"); err != nil || len(ids) != 0 {
			t.Errorf("%v, %v", ids, err)
		}
	})
}

// If a unit is refused because its group already has tasks, the other units of the call are still carried out.
func TestGroupTakenConcernsOneUnit(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustOpen(t, s, ofGroup("old", 1)...)
		outcomes, err := s.Apply(t.Context(), "manager", Unit{Open: ofGroup("old", 1), NewGroup: "old"},
			Unit{Open: ofGroup("new", 2), NewGroup: "new"}, Unit{Open: ofGroup("old", 1)})
		must(t, err)
		if got := fmt.Sprint(outcomes); got != "[{[] "+ErrGroupTaken.Error()+"} {[2 3] <nil>} {[4] <nil>}]" {
			t.Error(got)
		}
		mustBeSound(t, s)
	})
}

func TestOpenGroupAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		var all sync.WaitGroup
		opened := make([]string, 8)
		for i := range opened {
			all.Go(func() {
				ids, err := s.OpenGroup(t.Context(), "manager", ofGroup("g", 3)...)
				if err == nil {
					opened[i] = fmt.Sprint(ids)
				} else if !errors.Is(err, ErrGroupTaken) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := strings.Join(opened, ""); got != "[1 2 3]" {
			t.Errorf("opened: %s", got)
		}
	})
}
