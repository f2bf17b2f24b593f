package limits

import (
	"context"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// ReturnHeld makes tasks claimable whose time has come, and returns held tasks to their queues, as far as their reasons
// allow it now (docs/lifecycle.md, "Limits per key"). It returns the number of held tasks, and reports whether more may
// return at once.
func (s *Limiter) ReturnHeld(ctx context.Context) (n int, more bool, err error) {
	const doing = "return held tasks"
	keys := []string{s.Conn.Keys.List(task.Open), s.Conn.Keys.Due(), s.Conn.Keys.Paused(), s.Conn.Keys.Failing()}
	reply, err := s.Conn.Run(ctx, doing, lua.Unhold, keys, []any{s.Conn.Keys.TaskPrefix()},
		conn.Tuple(conn.IsNumber, conn.IsText))
	if err != nil {
		return 0, false, err
	}
	answer := conn.List(reply)
	return conn.Number(answer[0]), conn.Text(answer[1]) == "1", nil
}
