package redisstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A Mark is the mark of a group, and when the group got it.
type Mark struct {
	Mark  task.GroupMark
	Since task.Time // 0 without a mark
}

// GroupMark returns the mark of a group.
func (s *Store) GroupMark(ctx context.Context, group string) (Mark, error) {
	value, err := conn.Ask(ctx, s.Conn, fmt.Sprintf("read whether group %q is closed", group),
		func(r redis.Cmdable) *redis.StringCmd {
			return r.HGet(ctx, s.Keys.Groups(), group)
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
func (s *Store) CloseGroup(ctx context.Context, group string) error {
	_, err := s.changeMark(ctx, group, task.GroupOpen, task.GroupClosed)
	return err
}

// ExtendGroup makes a closed group open again. If the group is not closed, or has no tasks, ExtendGroup changes
// nothing. If the group is decided, the error wraps [task.ErrGroupDecided].
//
// Afterwards, no task can be opened on the condition [Unextended].
func (s *Store) ExtendGroup(ctx context.Context, group string) error {
	found, err := s.changeMark(ctx, group, task.GroupClosed, task.GroupOpen)
	switch {
	case errors.Is(err, task.ErrGroupEmpty):
		return nil
	case found == task.GroupDecided:
		return &task.GroupError{Group: group, Err: task.ErrGroupDecided}
	}
	return err
}

// BeginExtension ends openings on the condition [Unextended] in an open group. If the group is closed or decided,
// BeginExtension changes nothing. If the group has no tasks, the error wraps [task.ErrGroupEmpty].
func (s *Store) BeginExtension(ctx context.Context, group string) error {
	_, err := s.changeMark(ctx, group, task.GroupOpen, task.GroupOpen)
	return err
}

// A Condition is a condition about a group, on which tasks are opened, in the notation of the scripts. "" is none.
type Condition string

// NewGroup is the condition that a group has no tasks. It is no condition if the name is "".
func NewGroup(name string) Condition { return conditionOf("=", name) }

// Unextended is the condition that a group was not extended since its first task was opened. It is no condition if the
// name is "".
func Unextended(name string) Condition { return conditionOf("+", name) }

func conditionOf(kind, group string) Condition {
	if group == "" {
		return ""
	}
	return Condition(kind + group)
}

func (c Condition) isNew() bool { return strings.HasPrefix(string(c), "=") }

// later returns the condition of the calls after the first one.
func (c Condition) later() Condition {
	if c.isNew() {
		return Unextended(string(c[1:]))
	}
	return c
}

// unmet returns the error if the condition does not hold.
func (c Condition) unmet() error {
	if c.isNew() {
		return ErrGroupTaken
	}
	return ErrGroupExtended
}

// changeMark changes the mark of a group from one mark to another. It returns the mark that the group had. If this is
// not the mark from, nothing has changed.
func (s *Store) changeMark(ctx context.Context, group string, from, to task.GroupMark) (task.GroupMark, error) {
	if err := s.Conn.Ready(ctx); err != nil {
		return "", err
	}
	keys := []string{s.Keys.Calls(s.Conn.Boot()), s.Keys.Groups(), s.Keys.Group(group)}
	reply, err := s.Conn.CallOnce(ctx, lua.Marks, keys, true, conn.IsText,
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
func (s *Store) OpenGroupsOf(ctx context.Context, ids []int64) ([]string, error) {
	names, err := s.groupsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	marks, err := s.GroupMarks(ctx, names)
	var open []string
	for i, mark := range marks {
		if mark == task.GroupOpen {
			open = append(open, names[i])
		}
	}
	return open, err
}

// GroupMarks returns the marks of groups.
func (s *Store) GroupMarks(ctx context.Context, names []string) ([]task.GroupMark, error) {
	values, err := conn.AskEach(ctx, s.Conn, "read groups", names, func(p redis.Pipeliner, name string) *redis.StringCmd {
		return p.HGet(ctx, s.Keys.Groups(), name)
	})
	marks := make([]task.GroupMark, len(values))
	for i, value := range values {
		marks[i] = parseMark(value.Val()).Mark
	}
	return marks, err
}

// groupsOf returns the names of the groups that the given tasks depend on, in alphabetical order.
func (s *Store) groupsOf(ctx context.Context, ids []int64) (names []string, err error) {
	values, err := conn.AskEach(ctx, s.Conn, "read groups", ids, func(p redis.Pipeliner, id int64) *redis.SliceCmd {
		return p.HMGet(ctx, s.Keys.Task(id), task.FieldAfterGroup, task.FieldAfterGroupAny)
	})
	for _, v := range values {
		for _, name := range v.Val() {
			if conn.Text(name) != "" {
				names = append(names, conn.Text(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
