package redisstate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// SettleUsual examines the tasks that are due at the time now, but at most the given number. It moves each task that fits
// the usual case u. It returns how many tasks it has moved, and the others of these tasks, in the order of their due times.
func (s *Store) SettleUsual(ctx context.Context, who string, u tdf.Usual, now tdf.Time, most int) (moved int, others []Due, err error) {
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
		addForm(e, &form{first: m, shared: m.Set})
		addUsual(e, &u)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("settle due tasks: %w", err)
	}
	lines := strings.Split(conn.Text(reply), "\n")
	if moved, err = strconv.Atoi(lines[0]); err != nil {
		return 0, nil, fmt.Errorf("settle due tasks: redis: the script answered %q", lines[0])
	}
	for _, line := range lines[1:] {
		member, score, _ := strings.Cut(line, " ")
		at, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return moved, nil, fmt.Errorf("settle due tasks: redis: the script answered %q", line)
		}
		if others, err = s.appendDue(ctx, others, member, at); err != nil {
			return moved, nil, err
		}
	}
	return moved, others, nil
}

// addUsual adds the properties that the usual case needs and the patterns that they must fit, in the notation of settle.lua.
func addUsual(e *conn.Args, u *tdf.Usual) {
	read := []string{"", "log", "group", strconv.Itoa(u.Move.Round) + ":" + string(u.Move.From)}
	p := &conn.Args{}
	pattern := func(equal []tdf.Field, missing []string) {
		p.Count(len(equal))
		for _, f := range equal {
			read = append(read, f.Name)
			p.Add(f.Value)
		}
		read = append(read, missing...)
		p.Count(len(missing))
	}
	pattern(u.Equal, u.Missing)
	read = append(read, u.Filled...)
	p.Count(len(u.Filled))
	p.Count(len(u.Variants))
	for _, v := range u.Variants {
		pattern(v.Equal, v.Missing)
		p.Add(v.Empty)
	}
	e.Strings(read)
	e.All = append(e.All, p.All...)
}
