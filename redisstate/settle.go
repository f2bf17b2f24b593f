package redisstate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// SettleUsual examines the tasks that are due at the time now, but at most the given number. It moves each task that
// fits the usual case u. It returns how many tasks it has moved, and the others of these tasks, in the order of their
// due times.
func (s *Store) SettleUsual(ctx context.Context, who string, u tdf.Usual, now tdf.Time, most int) (moved int,
	others []Due, err error,
) {
	if err := s.Ready(ctx); err != nil {
		return 0, nil, err
	}
	m := &u.Move
	keys := append([]string{
		s.Keys.Calls(s.Boot()), s.Keys.Due(), s.Keys.List(m.From), s.Keys.List(m.To),
	}, s.wakeKeys(ctx, m.To)...)
	reply, err := s.CallOnce(ctx, lua.Settle, keys, true, conn.IsText, func(e *conn.Args) {
		e.Add(s.Keys.TaskPrefix(), s.Keys.GroupPrefix(), who, now.String())
		e.Count(most)
		addUsual(e, &u)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("settle due tasks: %w", err)
	}
	lines := strings.Split(conn.Text(reply), "\n")
	if moved, err = strconv.Atoi(lines[0]); err != nil {
		return 0, nil, fmt.Errorf("settle due tasks: redis: the script answered %q", lines[0])
	}
	usual := moved
	for _, line := range lines[1:] {
		if of, ok := strings.CutPrefix(line, "="); ok {
			text, queue, _ := strings.Cut(of, " ")
			n, _ := strconv.Atoi(text)
			usual -= n
			s.Count(queue, counts.TransitionName(m.Verb, m.To), int64(n))
			continue
		}
		member, score, _ := strings.Cut(line, " ")
		at, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return moved, nil, fmt.Errorf("settle due tasks: redis: the script answered %q", line)
		}
		if others, err = s.appendDue(ctx, others, member, at); err != nil {
			return moved, nil, err
		}
	}
	s.Count("", counts.TransitionName(m.Verb, m.To), int64(usual))
	return moved, others, nil
}

// addUsual adds the usual case in the notation of settle.lua.
func addUsual(e *conn.Args, u *tdf.Usual) {
	m := &u.Move
	read := []string{"", "log", "group", strconv.Itoa(m.Round) + ":" + string(m.From)}
	var values []string
	for _, f := range u.Equal {
		read, values = append(read, f.Name), append(values, f.Value)
	}
	read = append(slices.Concat(read, u.Missing, u.Filled), u.By, tdf.FieldQueue, u.Text)
	write := []string{"", "log", ""}
	for _, f := range m.Set {
		write = append(write, f.Name, f.Value)
	}
	for _, stamp := range m.Stamp {
		write = append(write, stamp.Name, "")
	}
	e.All = append(e.All, index.GroupCode(m.To), m.Note)
	for _, n := range []int{
		len(read), len(write), len(m.Stamp), len(values), len(u.Missing), len(u.Filled),
		len(u.Variants),
	} {
		e.Count(n)
	}
	e.Add(read...)
	e.Add(write...)
	e.Add(values...)
	for _, v := range u.Variants {
		e.Add(v.Value)
		e.Flag(v.Empty)
	}
}
