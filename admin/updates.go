package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
)

// An Update is a line that a program reported while it ran (docs/programs.md, "The round's directory").
type Update struct {
	Round  int       `json:"round"`
	Number int       `json:"number"` // the number of the update in its round; the first is 1
	Time   time.Time `json:"time"`
	Line   string    `json:"line"`
}

// Updates returns up to limit updates of a task, in order. The first of them is the update that follows after. If after
// is the zero Update, Updates starts with the task's first update.
func (a *Admin) Updates(ctx context.Context, id int64, after Update, limit int) ([]Update, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read %d updates of task %d: limit must be at least 1", limit, id)
	}
	s := a.redis()
	found, err := s.Updates(ctx, id, redisstate.Update{Round: after.Round, Number: after.Number}, limit)
	updates := make([]Update, len(found))
	for i, u := range found {
		updates[i] = Update{u.Round, u.Number, u.Time.Std(), u.Line}
	}
	return updates, err
}

// Follow asks the worker of a running task for frequent reports. The worker begins with its next renewal of the lease.
// For 15 s, it then reports every second, instead of at each renewal. It reports the progress, the updates, and the end
// of the output (Round.Tail). Call Follow again to get frequent reports for longer.
func (a *Admin) Follow(ctx context.Context, id int64) error {
	s := a.redis()
	return s.Follow(ctx, id)
}
