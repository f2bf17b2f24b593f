package manager

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf"
)

// A Group is a group that has tasks, and its state.
type Group struct {
	Name string
	GroupStatus
}

// A GroupList is one part of the list of all groups.
type GroupList struct {
	Groups []Group
	// Next is the cursor of the next part. In the last part it is "".
	Next string
}

// GroupsPerPage is the number of groups that AllGroups reads at once.
const GroupsPerPage = 100

// AllGroups returns all groups that have tasks and whose names begin with a prefix, ordered by the bytes of their
// names. The states of different groups are of different moments. A group that gets its first task meanwhile may be
// missing. After an error, AllGroups returns no more groups.
func (m *Manager) AllGroups(ctx context.Context, prefix string) iter.Seq2[Group, error] {
	return EachGroup(func(cursor string) (GroupList, error) { return m.GroupPage(ctx, prefix, cursor, GroupsPerPage) })
}

// EachGroup returns the groups of all parts of a list. The function reads the part with a cursor.
func EachGroup(read func(cursor string) (GroupList, error)) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		var list GroupList
		for first := true; first || list.Next != ""; first = false {
			var err error
			if list, err = read(list.Next); err != nil {
				yield(Group{}, err)
				return
			}
			for _, g := range list.Groups {
				if !yield(g, nil) {
					return
				}
			}
		}
	}
}

// GroupPage returns a part of the list that [Manager.AllGroups] returns: at most the given number of groups, and at
// most 1,000. The first part has the cursor "". If the cursor is invalid, the error is a *[QueryError].
func (m *Manager) GroupPage(ctx context.Context, prefix, cursor string, most int) (GroupList, error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return GroupList{}, &tdf.QueryError{
			Problem: fmt.Sprintf("the cursor %.80q is none that a list of groups has returned", cursor),
		}
	}
	groups, next, err := m.in().Store.Groups.ListGroups(ctx, prefix, string(after), most)
	list := GroupList{Next: GroupCursor(next)}
	for _, g := range groups {
		list.Groups = append(list.Groups, Group{g.Name, statusOf(g.Counts, g.Mark)})
	}
	return list, err
}

// GroupCursor returns the cursor with which [Manager.GroupPage] goes on after a group.
func GroupCursor(group string) string { return base64.RawURLEncoding.EncodeToString([]byte(group)) }
