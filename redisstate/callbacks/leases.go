package callbacks

import (
	"context"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Lease leases tasks to the call of Run with this id, and ends its leases of other tasks. It returns the records of the
// tasks that are leased now, in the order of the ids. Without a record, Attempts is 0. The leases hold for the given
// time, and longer if [Callbacks.SayHandling] renews them.
func (s Callbacks) Lease(ctx context.Context, run string, holds task.Seconds, ids, ended []int64) ([]Failure, error) {
	args := []any{run, holds.String(), len(ended)}
	for _, id := range ended {
		args = append(args, id)
	}
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := s.Conn.Run(ctx, "lease finished tasks", lua.Lease,
		[]string{s.Conn.Keys.CallbackLeases(), s.Conn.Keys.Callbacks(), s.Conn.Keys.LeasedBy(run)}, args,
		conn.ListOf(len(ids), len(ids), conn.IsText))
	if err != nil {
		return nil, err
	}
	var leased []Failure
	for i, answer := range conn.List(reply) {
		if record, ok := strings.CutPrefix(conn.Text(answer), "+"); ok {
			f := failureOf(record)
			f.Task = ids[i]
			leased = append(leased, f)
		}
	}
	return leased, nil
}
