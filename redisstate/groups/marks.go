// Package groups lists the groups of tasks, and closes and extends them (docs/lifecycle.md, "Closed groups").
package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Groups are those of a namespace.
type Groups struct{ Conn *conn.Conn }

// A Mark is the mark of a group, and when the group got it.
type Mark struct {
	Mark  task.GroupMark
	Since task.Time // 0 without a mark
}

// GroupMark returns the mark of a group.
func (g Groups) GroupMark(ctx context.Context, group string) (Mark, error) {
	value, err := conn.Ask(ctx, g.Conn, fmt.Sprintf("read whether group %q is closed", group),
		func(r redis.Cmdable) *redis.StringCmd {
			return r.HGet(ctx, g.Conn.Keys.Groups(), group)
		})
	return parseMark(value), err
}

// parseMark parses 'mark time'. An open group that was extended has only the time.
func parseMark(value string) Mark {
	mark, since, _ := strings.Cut(value, " ")
	if mark == string(task.GroupOpen) {
		return Mark{}
	}
	t, _ := strconv.ParseFloat(since, 64)
	return Mark{task.GroupMark(mark), task.Time(t)}
}

// CloseGroup closes a group: no task can be opened in it, until it is extended. If the group is closed or decided
// already, CloseGroup changes nothing. If the group has no tasks, the error wraps [task.ErrGroupEmpty].
func (g Groups) CloseGroup(ctx context.Context, group string) error {
	_, err := g.changeMark(ctx, group, task.GroupOpen, task.GroupClosed)
	return err
}

// ExtendGroup makes a closed group open again. If the group is not closed, or has no tasks, ExtendGroup changes
// nothing. If the group is decided, the error wraps [task.ErrGroupDecided].
//
// Afterwards, no task can be opened on the condition redisstate.Unextended.
func (g Groups) ExtendGroup(ctx context.Context, group string) error {
	found, err := g.changeMark(ctx, group, task.GroupClosed, task.GroupOpen)
	switch {
	case errors.Is(err, task.ErrGroupEmpty):
		return nil
	case found == task.GroupDecided:
		return &task.GroupError{Group: group, Err: task.ErrGroupDecided}
	}
	return err
}

// BeginExtension ends openings on the condition redisstate.Unextended in an open group. If the group is closed or
// decided, BeginExtension changes nothing. If the group has no tasks, the error wraps [task.ErrGroupEmpty].
func (g Groups) BeginExtension(ctx context.Context, group string) error {
	_, err := g.changeMark(ctx, group, task.GroupOpen, task.GroupOpen)
	return err
}

// changeMark changes the mark of a group from one mark to another. It returns the mark that the group had. If this is
// not the mark from, nothing has changed.
func (g Groups) changeMark(ctx context.Context, group string, from, to task.GroupMark) (task.GroupMark, error) {
	if err := g.Conn.Ready(ctx); err != nil {
		return "", err
	}
	keys := []string{g.Conn.Keys.Calls(g.Conn.Boot()), g.Conn.Keys.Groups(), g.Conn.Keys.Group(group)}
	reply, err := g.Conn.CallOnce(ctx, lua.Marks, keys, true, conn.IsText,
		func(e *conn.Args) { e.Add(group, string(from), string(to)) })
	if conn.Unanswered(err) {
		return "", err
	}
	answer := conn.Text(reply)
	switch found, ok := strings.CutPrefix(answer, "+"); {
	case ok:
		return task.GroupMark(found), err
	case answer == "-":
		return "", &task.GroupError{Group: group, Err: task.ErrGroupEmpty}
	}
	return "", errors.New(strings.TrimPrefix(answer, "!"))
}

// OpenGroupsOf returns those groups that are not closed, and that the given tasks depend on. The names are in
// alphabetical order.
func (g Groups) OpenGroupsOf(ctx context.Context, ids []int64) (open []string, err error) {
	values, err := conn.AskEach(ctx, g.Conn, "read groups", ids, func(p redis.Pipeliner, id int64) *redis.SliceCmd {
		return p.HMGet(ctx, g.Conn.Keys.Task(id), task.FieldAfterGroup, task.FieldAfterGroupAny)
	})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, v := range values {
		for _, name := range v.Val() {
			names[conn.Text(name)] = true
		}
	}
	delete(names, "")
	all := slices.Sorted(maps.Keys(names))
	marks, err := g.GroupMarks(ctx, all)
	for i, mark := range marks {
		if mark == task.GroupOpen {
			open = append(open, all[i])
		}
	}
	return open, err
}

// GroupMarks returns the marks of groups.
func (g Groups) GroupMarks(ctx context.Context, names []string) ([]task.GroupMark, error) {
	values, err := conn.AskEach(ctx, g.Conn, "read groups", names, func(p redis.Pipeliner, name string) *redis.StringCmd {
		return p.HGet(ctx, g.Conn.Keys.Groups(), name)
	})
	marks := make([]task.GroupMark, len(values))
	for i, value := range values {
		marks[i] = parseMark(value.Val()).Mark
	}
	return marks, err
}
