package redisstate

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// located are the entries by which claims and the server find an open task, read at one moment.
type located struct {
	state, placedIn string
	place           string    // its score in the place; "" for none
	further         [5]string // see located.lua
}

// locatedAtOnce limits a call of located.lua.
const locatedAtOnce = 100

// inPlace reports for each task whether claims, or the server, find it in its place. It is true for a task without a
// place, and for one that has moved since it was read.
func (s *Store) inPlace(ctx context.Context, all []tdf.Placement) ([]bool, error) {
	in := make([]bool, len(all))
	var asked []int
	for i := range all {
		t := all[i].Task
		in[i] = t == nil || t.State != tdf.Open || t.OpenPlace() == ""
		if !in[i] {
			asked = append(asked, i)
		}
	}
	for some := range slices.Chunk(asked, locatedAtOnce) {
		var keys []string
		var args []any
		for _, i := range some {
			t := all[i].Task
			further, members := s.entriesOf(t)
			keys = append(append(keys, s.Keys.Task(t.ID), s.Keys.Place(t.OpenPlace())), further...)
			args = append(args, t.ID, len(members))
			for _, m := range members {
				args = append(args, m)
			}
		}
		reply, err := s.Run(ctx, "read the places of open tasks", lua.Located, keys, args,
			conn.ListOf(len(some), len(some), conn.ListOf(8, 8, conn.IsText)))
		if err != nil {
			return in, err
		}
		for k, facts := range conn.List(reply) {
			in[some[k]] = readLocated(conn.List(facts)).holds(all[some[k]].Task)
		}
	}
	return in, nil
}

// entriesOf returns the keys and members of the entries that a task must have beside that of its place. A held task has
// only that of its limit key, if it waits because of a limit, or the one in unlinked, if the server must link it.
func (s *Store) entriesOf(t *tdf.Task) (keys, members []string) {
	priority := strconv.Itoa(t.Priority)
	switch {
	case t.MustLink():
		return []string{s.Keys.Unlinked()}, []string{strconv.FormatInt(t.ID, 10)}
	case t.WaitsForLimit():
		return []string{s.Keys.LimitsDue(), s.Keys.Levels(t.OpenPart())}, []string{t.LimitKey, priority}
	case tdf.IsHeld(t.OpenPlace()):
		return nil, nil
	}
	queue, partition := t.Requirement().Queue, t.Requirement().String()
	return []string{
		s.Keys.Partitions(), s.Keys.Coming(queue), s.Keys.Levels(partition), s.Keys.Later(partition), s.Keys.Heads(queue),
	}, []string{partition, partition, priority, priority, ""}
}

func readLocated(facts []any) (l located) {
	l.state, l.placedIn, l.place = conn.Text(facts[0]), conn.Text(facts[1]), conn.Text(facts[2])
	for i := range l.further {
		l.further[i] = conn.Text(facts[3+i])
	}
	return l
}

// holds reports whether a task has all of its entries, or has moved since it was read.
func (l located) holds(t *tdf.Task) bool {
	switch f := l.further; {
	case l.state != "" && l.state != string(tdf.Open), l.placedIn != t.PlacedIn:
		return true
	case l.place == "":
		return false
	case t.MustLink():
		return f[0] != ""
	case t.WaitsForLimit():
		return f[0] != "" && f[1] != ""
	case tdf.IsHeld(t.OpenPlace()):
		return true
	}
	return l.isListed(t.Priority)
}

// isListed reports whether claims find the place itself. The first task of the partition comes before the task, or is
// the task.
func (l located) isListed(priority int) bool {
	coming, level, later, listed := l.further[1], l.further[2], l.further[3], l.further[4]
	head, known := strings.CutPrefix(l.further[0], "=")
	switch {
	case !known:
		return false
	case level != "":
		return listed != "" && !headIsAfter(head, priority, scoreOf(l.place))
	}
	return later != "" && coming != "" && scoreOf(coming) <= scoreOf(later)
}

// scoreOf parses a score. Redis writes it so that no digit is lost.
func scoreOf(text string) float64 {
	score, _ := strconv.ParseFloat(text, 64)
	return score
}

// headIsAfter reports whether a member of `heads` (see places.lua) comes after a task.
func headIsAfter(member string, priority int, score float64) bool {
	if len(member) < 30 {
		return true
	}
	inverted, err1 := strconv.Atoi(member[:10])
	first, err2 := strconv.ParseFloat(member[11:28], 64)
	return err1 != nil || err2 != nil || math.MaxInt32-inverted < priority || math.MaxInt32-inverted == priority &&
		first > score+1e-5
}
