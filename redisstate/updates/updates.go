// Package updates reads what programs report while they run (docs/programs.md, "updates").
package updates

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Updates are those of the tasks of a namespace.
type Updates struct{ Conn *conn.Conn }

// FollowLife is the time for which a call of Follow has an effect.
const FollowLife = 15 * time.Second

// Follow asks the worker of a running task to report every second, because a user watches the task. The request holds
// for 15 s.
func (s Updates) Follow(ctx context.Context, id int64) error {
	return s.Conn.BestEffort(ctx, "follow the task",
		func(p redis.Pipeliner) {
			p.Set(ctx, s.Conn.Keys.FollowPrefix()+strconv.FormatInt(id, 10), "1", FollowLife)
		})
}

// An Update is a line that a program reported while it ran.
type Update struct {
	Round  int       `json:"round"`
	Number int       `json:"number"` // counts from 1 in each round
	Time   task.Time `json:"time"`
	Line   string    `json:"line"`
}

// After returns the updates of a task that follow the given update, in order. After the zero Update, it begins with the
// first update. It returns at most the given number of updates. If another program wrote an entry whose id needs more
// than 63 bits, After ends before that entry.
func (s Updates) After(ctx context.Context, id int64, after Update, most int) ([]Update, error) {
	from := fmt.Sprintf("(%d-%d", after.Round, after.Number)
	found, err := conn.Ask(ctx, s.Conn, "read updates", func(r redis.Cmdable) *redis.XMessageSliceCmd {
		return r.XRangeN(ctx, s.Conn.Keys.UpdatesPrefix()+strconv.FormatInt(id, 10), from, "+", int64(most))
	})
	return parseUpdates(found), err
}

// Last returns the newest updates of a task from a round on, in order. It returns at most the given number of
// updates.
func (s Updates) Last(ctx context.Context, id int64, round, most int) ([]Update, error) {
	found, err := conn.Ask(ctx, s.Conn, "read updates", func(r redis.Cmdable) *redis.XMessageSliceCmd {
		return r.XRevRangeN(ctx, s.Conn.Keys.UpdatesPrefix()+strconv.FormatInt(id, 10), "+", strconv.Itoa(round),
			int64(most))
	})
	slices.Reverse(found)
	return parseUpdates(found), err
}

// Count returns the number of all updates of a task.
func (s Updates) Count(ctx context.Context, id int64) (int, error) {
	n, err := conn.Ask(ctx, s.Conn, "count updates", func(r redis.Cmdable) *redis.IntCmd {
		return r.XLen(ctx, s.Conn.Keys.UpdatesPrefix()+strconv.FormatInt(id, 10))
	})
	return int(n), err
}

func parseUpdates(found []redis.XMessage) []Update {
	updates := make([]Update, len(found))
	for i, m := range found {
		round, number, _ := strings.Cut(m.ID, "-")
		var errRound, errNumber error
		updates[i].Round, errRound = strconv.Atoi(round)
		updates[i].Number, errNumber = strconv.Atoi(number)
		if errRound != nil || errNumber != nil {
			return updates[:i]
		}
		at, err := task.ParseTime(conn.Text(m.Values["time"]))
		if err == nil && at >= 0 && at < task.Never { // else another program wrote it
			updates[i].Time = at
		}
		updates[i].Line = conn.Text(m.Values["line"])
	}
	return updates
}
