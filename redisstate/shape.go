package redisstate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
)

// A shape is the common part of similar moves. A call contains each shape only once, to save bytes. For example, the
// moves of a hundred tasks that succeeded differ only in the ids of the tasks.
type shape struct {
	number int // number of the shape in the call, counted from 1
	first  *tdf.Move
	shared []tdf.Field // properties that have the same value in all moves of this shape
	own    []string    // names of the other properties
}

type shapes struct {
	all   []*shape
	byKey map[string]*shape
}

// shapeKey returns the same text for two moves if they differ only in their tasks, their fences and the values that
// they set.
func shapeKey(m *tdf.Move) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %s %s %s %t %t %t %t %v %v %q", m.From, m.Round, m.Revision, destination(m), linkKind(m), m.Repair,
		m.Unique != "", m.Limit != "", m.Updates, m.Score, m.NextDue, m.Note)
	for _, f := range m.Set {
		b.WriteString(" " + f.Name)
	}
	for _, s := range m.Stamp {
		fmt.Fprintf(&b, " %s %v", s.Name, s.At)
	}
	fmt.Fprintf(&b, " %q", m.Clear)
	return b.String()
}

func shapesOf(units []Unit) *shapes {
	all := &shapes{byKey: map[string]*shape{}}
	for i := range units {
		for j := range units[i].Moves {
			all.add(&units[i].Moves[j])
		}
	}
	return all
}

func (all *shapes) add(m *tdf.Move) {
	key := shapeKey(m)
	s := all.byKey[key]
	if s == nil {
		s = &shape{number: len(all.all) + 1, first: m, shared: slices.Clone(m.Set)}
		all.byKey[key] = s
		all.all = append(all.all, s)
		return
	}
	s.shared = slices.DeleteFunc(s.shared, func(f tdf.Field) bool {
		if slices.Contains(m.Set, f) {
			return false
		}
		s.own = append(s.own, f.Name)
		return true
	})
}
