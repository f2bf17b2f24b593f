package redisstate

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// locatedAtOnce limits a call of located.lua.
const locatedAtOnce = 100

// inPlace reports for each task whether claims, or the server, find it in its place. It is true for a task without a
// place, and for one that has moved since it was read.
func (s *Store) inPlace(ctx context.Context, all []rules.Placement) ([]bool, error) {
	in := make([]bool, len(all))
	var asked []int
	for i := range all {
		t := all[i].Task
		in[i] = t == nil || t.State != task.Open || t.OpenPlace() == "" || t.PlacedIn != t.OpenPlace()
		if !in[i] {
			asked = append(asked, i)
		}
	}
	for some := range slices.Chunk(asked, locatedAtOnce) {
		e := &conn.Args{}
		e.Add(s.Keys.TaskPrefix())
		for _, i := range some {
			t := all[i].Task
			e.All = append(e.All, t.ID, t.OpenPlace())
			e.Flag(t.MustLink())
		}
		reply, err := s.Conn.Run(ctx, "read the places of open tasks", lua.Located, []string{s.Keys.List(task.Open)}, e.All,
			conn.ListOf(len(some), len(some), conn.IsNumber))
		if err != nil {
			return in, err
		}
		for k, found := range conn.List(reply) {
			in[some[k]] = conn.Number(found) == 1
		}
	}
	return in, nil
}
