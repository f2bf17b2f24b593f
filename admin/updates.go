package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/internal/stdtime"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Update is a line that a program reported while it ran (docs/programs.md, "The round's directory").
type Update struct {
	Round  int       `json:"round"`
	Number int       `json:"number"` // of its round; the first is 1
	Time   time.Time `json:"time"`
	Line   string    `json:"line"`
}

// Updates returns up to limit updates of a task in their order: those after a given one, or from the first if that is the zero Update.
func (a *Admin) Updates(ctx context.Context, id int64, after Update, limit int) ([]Update, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read %d updates of task %d: limit must be at least 1", limit, id)
	}
	s, err := a.redis(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.Updates(ctx, id, redisstate.Update{Round: after.Round, Number: after.Number}, limit)
	updates := make([]Update, len(found))
	for i, u := range found {
		updates[i] = Update{u.Round, u.Number, stdtime.Time(u.Time), u.Line}
	}
	return updates, err
}

// Follow tells the worker of a running task to report every second for the next 15 s, instead of at each renewal of the lease: the end of
// the output (Round.Tail), the progress and the updates. The worker begins with its next renewal. Call Follow again to continue.
func (a *Admin) Follow(ctx context.Context, id int64) error {
	s, err := a.redis(ctx)
	if err != nil {
		return err
	}
	return s.Follow(ctx, id)
}
