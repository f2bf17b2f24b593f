package admin

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A Bar is a round that a slot of a worker ran, or several short rounds in a row (docs/dashboard.md, "Timeline").
type Bar = presence.Bar

// A Timeline has the bars of one worker, ordered by their ends.
type Timeline = presence.Timeline

// BarRunning is the outcome of a [Bar] of a round that has not ended.
const BarRunning = presence.BarRunning

// MaxBarSlot is the highest slot of a worker that has bars.
const MaxBarSlot = presence.MaxBarSlot

// Timelines returns what workers ran since a time, in the order of their names. Workers over HTTP have no bars. Bars
// are best effort: Redis keeps about 1,000 of a worker, for at most a day.
func (a *Admin) Timelines(ctx context.Context, workers []string, since time.Time) ([]Timeline, error) {
	return a.redis().Timelines(ctx, workers, tdf.At(since))
}
