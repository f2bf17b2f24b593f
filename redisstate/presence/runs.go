package presence

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Run names a run of a task.
type Run struct {
	ID    int64
	Round int
	Claim string
}

func (r Run) String() string {
	return strconv.FormatInt(r.ID, 10) + " " + strconv.Itoa(r.Round) + " " + r.Claim
}

// Hold notes runs of a worker that does not name its runs when it renews their leases, so that [Presence.Held] can. The
// note is kept for the given time after the last call, which also may note no runs.
func (s *Presence) Hold(ctx context.Context, worker string, keep task.Seconds, runs ...Run) error {
	return s.Conn.Pipeline(conn.Unacknowledged(ctx), "note the runs of worker "+worker, func(p redis.Pipeliner) {
		if len(runs) > 0 {
			p.SAdd(ctx, s.Conn.Keys.Claims(worker), members(runs)...)
		}
		p.PExpire(ctx, s.Conn.Keys.Claims(worker), keep.Std())
	})
}

// LetGo removes runs from the note of Hold.
func (s *Presence) LetGo(ctx context.Context, worker string, runs ...Run) error {
	if len(runs) == 0 {
		return nil
	}
	return s.Conn.Pipeline(conn.Unacknowledged(ctx), "note the runs of worker "+worker,
		func(p redis.Pipeliner) { p.SRem(ctx, s.Conn.Keys.Claims(worker), members(runs)...) })
}

// Held returns the runs that Hold has noted. Some of them may have ended.
func (s *Presence) Held(ctx context.Context, worker string) (all []Run, err error) {
	lines, err := conn.Ask(ctx, s.Conn, "read the runs of worker "+worker, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.SMembers(ctx, s.Conn.Keys.Claims(worker))
	})
	for _, line := range lines {
		if parts := strings.SplitN(line, " ", 3); len(parts) == 3 {
			id, _ := strconv.ParseInt(parts[0], 10, 64)
			round, _ := strconv.Atoi(parts[1])
			all = append(all, Run{id, round, parts[2]})
		}
	}
	return all, err
}

func members(runs []Run) []any {
	all := make([]any, len(runs))
	for i, r := range runs {
		all[i] = r.String()
	}
	return all
}
