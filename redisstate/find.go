package redisstate

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A ListQuery selects tasks from the lists of some states, and orders them by their scores, which are times. If the
// query selects the tasks of a group, it orders them by id. After and Before limit the time at which a task entered its
// state. Both have no effect on open tasks, on executed tasks, and on queries for a group, because the scores of these
// tasks have another meaning.
type ListQuery struct {
	States        []task.State
	Group         string // "" selects the tasks of all groups, and tasks without a group
	After, Before task.Time
	ByScore       bool // After and Before limit the scores in all lists, whatever they mean
	OldestFirst   bool
	Behind        *ListEntry // the entry after which the query continues; nil starts at the beginning
}

// A ListEntry is a task's entry in a list.
type ListEntry struct {
	Order  float64 // the score; in a query for a group, the id
	Member string  // the id; a member that another program added may be any text
}

// ID returns the id of the task. If the member is not an id, ok is false.
func (p ListEntry) ID() (id int64, ok bool) {
	ids := conn.IDsOf([]string{p.Member})
	if len(ids) == 0 {
		return 0, false
	}
	return ids[0], true
}

// IDsOf returns the ids of tasks. It skips members that are not ids.
func IDsOf(entries []ListEntry) (ids []int64) {
	for _, p := range entries {
		if id, ok := p.ID(); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Compare orders entries as Redis orders the entries of one list.
func (p ListEntry) Compare(other ListEntry) int {
	return cmp.Or(cmp.Compare(p.Order, other.Order), strings.Compare(p.Member, other.Member))
}

// Find returns the first entries that a query selects, all as they were at one moment. It returns at most the given
// number of entries, and at most 1,000. If no more entries follow, last is true. A walk through a group finds each task
// once, even if tasks change their states during the walk.
func (s *Store) Find(ctx context.Context, of ListQuery, most int) (places []ListEntry, last bool, err error) {
	if len(of.States) == 0 {
		return nil, true, nil
	}
	most = min(most, maxTasksPerCall)
	keys, args := []string{}, []any{"newest", most}
	if of.OldestFirst {
		args[0] = "oldest"
	}
	lists := of.lists()
	for _, state := range lists {
		listRange := s.listRange(&of, state)
		keys = append(keys, listRange.key)
		args = append(args, listRange.score, listRange.member, listRange.stop)
	}
	reply, err := s.Conn.Run(ctx, "find tasks", lua.Find, keys, args, conn.ListOf(len(keys), len(keys), conn.ManyTexts))
	if err != nil {
		return nil, false, err
	}
	last = true
	for i, page := range conn.List(reply) {
		found := of.places(lists[i], conn.List(page))
		last = last && len(found) < most
		places = append(places, found...)
	}
	slices.SortFunc(places, of.compare)
	if len(places) > most {
		places, last = places[:most], false
	}
	return places, last, nil
}

// Pages yields all entries that the query selects, in pages of at most the given number. After an error, the sequence
// ends.
func (of ListQuery) Pages(ctx context.Context, s interface {
	Find(ctx context.Context, of ListQuery, most int) (places []ListEntry, last bool, err error)
}, most int,
) iter.Seq2[[]ListEntry, error] {
	return func(yield func([]ListEntry, error) bool) {
		for last := false; !last; {
			var page []ListEntry
			var err error
			if page, last, err = s.Find(ctx, of, most); err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 {
				of.Behind = &page[len(page)-1]
				if !yield(page, nil) {
					return
				}
			}
		}
	}
}

// lists returns the lists from which the query selects. The index of a group has all open tasks of the group.
func (of *ListQuery) lists() []task.State {
	if of.Group != "" {
		return of.States
	}
	var lists []task.State
	for _, state := range of.States {
		lists = append(lists, rules.ListsOf(state)...)
	}
	return lists
}

func (of *ListQuery) compare(a, b ListEntry) int {
	if of.OldestFirst {
		return a.Compare(b)
	}
	return b.Compare(a)
}

func (of *ListQuery) places(state task.State, members []any) []ListEntry {
	places := make([]ListEntry, len(members)/2)
	for i := range places {
		score, _ := strconv.ParseFloat(conn.Text(members[2*i+1]), 64)
		places[i] = ListEntry{score - of.base(state), conn.Text(members[2*i])}
	}
	return places
}

// base returns the lowest score of a state in the index of a group.
func (of *ListQuery) base(state task.State) float64 {
	if of.Group == "" {
		return 0
	}
	return index.GroupScore(state, 0)
}

// A listRange is the part of one sorted set that a query selects. Its fields are arguments of find.lua.
type listRange struct{ key, score, member, stop string }

func (s *Store) listRange(of *ListQuery, state task.State) listRange {
	l := listRange{key: s.Keys.List(state)}
	low, high := of.After, of.Before
	base := of.base(state)
	if of.Group != "" {
		l.key = s.Keys.Group(of.Group)
		low, high = task.Time(base), task.Time(base+index.GroupIDs)
	} else if !of.ByScore && (state == task.Open || state == rules.Placed || state == task.Executed) {
		low, high = 0, 0
	}
	begin, end := high, low
	if of.OldestFirst {
		begin, end = low, high
	}
	if begin > 0 {
		l.score = score(float64(begin))
	}
	if end > 0 {
		l.stop = score(float64(end))
	}
	if p := of.Behind; p != nil && !of.isBefore(p.Order+base, float64(begin)) {
		l.score, l.member = score(p.Order+base), p.Member
	}
	return l
}

// isBefore reports whether an entry with this order comes before begin, the place at which a listRange begins. If begin
// is 0, the listRange begins with the first entry of the list.
func (of *ListQuery) isBefore(order, begin float64) bool {
	switch {
	case begin == 0:
		return false
	case of.OldestFirst:
		return order < begin
	}
	return order >= begin
}

func score(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
