package admin

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// Counts does the same as [manager.Manager.Counts], and adds up the counts of all namespaces.
func (s *Shards) Counts(ctx context.Context, groups ...string) (task.Counts, error) {
	sum := task.Counts{}
	for _, of := range s.all {
		counts, err := of.manager.Counts(ctx, groups...)
		if err != nil {
			return sum, s.fault(of, err)
		}
		addCounts(sum, counts)
	}
	return sum, nil
}

func addCounts(sum, more task.Counts) {
	for state, n := range more {
		sum[state] += n
	}
}

// GroupStatus does the same as [manager.Manager.GroupStatus]. Only namespaces in which the group has tasks count: the
// group is closed if it is closed in all of them.
func (s *Shards) GroupStatus(ctx context.Context, group string) (manager.GroupStatus, error) {
	all := manager.GroupStatus{Counts: task.Counts{}}
	for _, of := range s.all {
		status, err := of.manager.GroupStatus(ctx, group)
		if err != nil {
			return all, s.fault(of, err)
		}
		addStatus(&all, status)
	}
	return all, nil
}

func addStatus(all *manager.GroupStatus, more manager.GroupStatus) {
	if more.Counts.Total() == 0 {
		return
	}
	all.Closed = more.Closed && (all.Closed || all.Counts.Total() == 0)
	all.Decided = all.Decided || more.Decided
	if more.Since.After(all.Since) {
		all.Since = more.Since
	}
	addCounts(all.Counts, more.Counts)
}

// GroupPage does the same as [manager.Manager.GroupPage]. A group that has tasks in several namespaces appears once.
func (s *Shards) GroupPage(ctx context.Context, prefix, cursor string, most int) (page manager.GroupList, err error) {
	byName := map[string]*manager.Group{}
	var last string // up to which name all groups are known; "" means all
	for _, of := range s.all {
		part, err := of.manager.GroupPage(ctx, prefix, cursor, most)
		if err != nil {
			return page, s.fault(of, err)
		}
		if n := len(part.Groups); part.Next != "" && n > 0 && (last == "" || part.Groups[n-1].Name < last) {
			last = part.Groups[n-1].Name
		}
		for _, g := range part.Groups {
			if byName[g.Name] == nil {
				byName[g.Name] = &manager.Group{Name: g.Name, GroupStatus: manager.GroupStatus{Counts: task.Counts{}}}
			}
			addStatus(&byName[g.Name].GroupStatus, g.GroupStatus)
		}
	}
	for _, g := range byName {
		page.Groups = append(page.Groups, *g)
	}
	slices.SortFunc(page.Groups, func(a, b manager.Group) int { return strings.Compare(a.Name, b.Name) })
	if end := slices.IndexFunc(page.Groups, func(g manager.Group) bool { return last != "" && g.Name > last }); end >= 0 {
		page.Groups = page.Groups[:end]
	}
	if len(page.Groups) > most {
		page.Groups, last = page.Groups[:most], page.Groups[most-1].Name
	}
	if last != "" {
		page.Next = manager.GroupCursor(last)
	}
	return page, nil
}

// AllGroups does the same as [manager.Manager.AllGroups], but each group appears once.
func (s *Shards) AllGroups(ctx context.Context, prefix string) iter.Seq2[manager.Group, error] {
	return manager.EachGroup(func(cursor string) (manager.GroupList, error) {
		return s.GroupPage(ctx, prefix, cursor, manager.GroupsPerPage)
	})
}

// Outcomes does the same as [Admin.Outcomes], and adds up the counts of all namespaces.
func (s *Shards) Outcomes(ctx context.Context, group string) (map[string]int64, error) {
	sum := map[string]int64{}
	for _, of := range s.all {
		counts, err := of.admin.Outcomes(ctx, group)
		if err != nil {
			return sum, s.fault(of, err)
		}
		for outcome, n := range counts {
			sum[outcome] += n
		}
	}
	return sum, nil
}

// CloseGroup does the same as [manager.Manager.CloseGroup], in each namespace in which the group has tasks. If there is
// none, the error wraps [task.ErrGroupEmpty].
func (s *Shards) CloseGroup(ctx context.Context, group string) error {
	closed := false
	var empty error
	for _, of := range s.all {
		err := of.manager.CloseGroup(ctx, group)
		switch {
		case errors.Is(err, task.ErrGroupEmpty):
			empty = err
		case err != nil:
			return s.fault(of, err)
		default:
			closed = true
		}
	}
	if closed {
		return nil
	}
	return empty
}
