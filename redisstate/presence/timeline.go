package presence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Bar is a round that a slot of a worker ran, or several short rounds in a row (docs/dashboard.md, "Timeline").
type Bar struct {
	Slot       int // at least 1
	Start, End tdf.Time
	Busy       tdf.Seconds // how long rounds ran between Start and End
	Rounds     int         // at least 1
	Outcome    string      // one of [BarOutcomes]: the worst of the rounds
	Task       int64       // of the last round with this outcome, like Round
	Round      int
	Group      string // the first bytes of the name; "" if the rounds have no group, or several
}

// BarOutcomes lists how a round of a Bar can end, the worst last. The End of a running Bar is its Start.
var BarOutcomes = []string{BarRunning, "succeeded", "released", "failed", "timed_out"}

// BarRunning is the outcome of a round that has not ended.
const BarRunning = "running"

// Worse returns how bad the outcome is: its index in [BarOutcomes].
func (b *Bar) Worse() int { return slices.Index(BarOutcomes, b.Outcome) }

// Bounds of timelines.
const (
	MaxBars      = 1000           // bars of one worker in Redis
	timelineLife = 24 * time.Hour // since the last bar
	barsAtOnce   = 500            // in one command
	longestBar   = 300            // bytes of a Bar in Redis
	barGroup     = 100            // bytes of the name of its group
	MaxBarSlot   = 250            // slots of a worker that have bars, so that a call stays small
	latestBar    = 1e11           // no Bar of a worker ends later, in the year 5138
)

func (b *Bar) text() string {
	group := strings.ToValidUTF8(b.Group[:min(len(b.Group), barGroup)], "")
	return fmt.Sprintf("%d %v %v %v %d %s %d %d %s", b.Slot, b.Start, b.End, b.Busy, b.Rounds, b.Outcome, b.Task,
		b.Round, group)
}

func parse[T any](to *T, as func(string) (T, error), text string) (err error) {
	*to, err = as(text)
	return err
}

func parseID(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// parseBar returns false for a text that no worker has written.
func parseBar(text string) (b Bar, ok bool) {
	parts := strings.SplitN(text, " ", 9)
	if len(text) > longestBar || len(parts) < 9 {
		return b, false
	}
	err := errors.Join(
		parse(&b.Slot, strconv.Atoi, parts[0]),
		parse(&b.Start, tdf.ParseTime, parts[1]),
		parse(&b.End, tdf.ParseTime, parts[2]),
		parse(&b.Busy, tdf.ParseSeconds, parts[3]),
		parse(&b.Rounds, strconv.Atoi, parts[4]),
		parse(&b.Task, parseID, parts[6]),
		parse(&b.Round, strconv.Atoi, parts[7]),
	)
	if err != nil {
		return b, false
	}
	b.Outcome, b.Group = parts[5], parts[8]
	b.Busy = min(b.Busy, b.End.Sub(b.Start))
	return b, b.Slot > 0 && b.Slot <= MaxBarSlot && b.Start <= b.End && b.End < latestBar && b.Rounds > 0 &&
		b.Worse() >= 0 && b.Task > 0 && b.Round >= 0
}

// AddBars adds bars to the timeline of a worker. The present bars may still change: they replace those of the last
// call. The timeline keeps the latest [MaxBars] bars. It expires a day after the last call. AddBars is best effort: a
// repeated call changes nothing, and a lost one leaves a gap.
func (s *Presence) AddBars(ctx context.Context, worker string, ended, present []Bar) error {
	key, latest := s.Keys.Timeline(worker), strconv.FormatFloat(latestBar, 'g', -1, 64)
	members := make([]redis.Z, 0, len(ended)+len(present))
	for i := range ended {
		members = append(members, redis.Z{Score: float64(ended[i].End), Member: ended[i].text()})
	}
	for i := range present {
		members = append(members, redis.Z{Score: latestBar, Member: present[i].text()})
	}
	return s.BestEffort(ctx, "store the timeline of worker "+worker, func(p redis.Pipeliner) {
		p.ZRemRangeByScore(ctx, key, latest, latest)
		for some := range slices.Chunk(members, barsAtOnce) {
			p.ZAdd(ctx, key, some...)
		}
		p.ZRemRangeByRank(ctx, key, 0, -1-MaxBars)
		p.Expire(ctx, key, timelineLife)
	})
}

// A Timeline has the bars of one worker, ordered by their ends; the present bars come last.
type Timeline struct {
	Bars []Bar
	Full bool // earlier bars may have been forgotten
}

// Timelines returns the timelines of workers since a time, in the order of the names. It ignores invalid entries.
func (s *Presence) Timelines(ctx context.Context, workers []string, since tdf.Time) ([]Timeline, error) {
	replies, err := conn.AskEach(ctx, s.Conn, "read the timelines of workers", workers,
		func(p redis.Pipeliner, name string) *redis.StringSliceCmd {
			return p.ZRangeArgs(ctx, redis.ZRangeArgs{
				Key: s.Keys.Timeline(name), ByScore: true, Start: since.String(),
				Stop: "+inf", Count: MaxBars,
			})
		})
	if err != nil {
		return nil, err
	}
	all := make([]Timeline, len(workers))
	for i, reply := range replies {
		all[i].Full = len(reply.Val()) >= MaxBars
		for _, text := range reply.Val() {
			if b, ok := parseBar(text); ok {
				all[i].Bars = append(all[i].Bars, b)
			}
		}
	}
	return all, nil
}
