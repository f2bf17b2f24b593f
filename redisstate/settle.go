package redisstate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
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
		s.keys.Calls(s.boot), s.keys.Due(), s.keys.List(m.From), s.keys.List(m.To),
	}, s.wakeKeys(ctx, m.To)...)
	reply, err := s.callOnce(ctx, lua.Settle, keys, true, isText, func(e *encoder) {
		e.add(s.keys.TaskPrefix(), s.keys.GroupPrefix(), who, now.String())
		e.count(most)
		e.form(&form{first: m, shared: m.Set})
		e.fields(u.Equal)
		e.strings(u.Filled)
		e.strings(u.Missing)
		e.count(len(u.Variants))
		for _, v := range u.Variants {
			e.fields(v.Equal)
			e.strings(v.Missing)
			e.add(v.Empty)
		}
	})
	if err != nil {
		return 0, nil, fmt.Errorf("settle due tasks: %w", err)
	}
	lines := strings.Split(text(reply), "\n")
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
