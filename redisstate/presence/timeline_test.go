package presence

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Each worker has a timeline of its own. Present bars are replaced, a repeated call adds nothing, and old bars are forgotten.
func TestTimeline(t *testing.T) {
	onEach(t, func(t *testing.T, s *Presence) {
		ctx := t.Context()
		one := Bar{Slot: 1, Start: 1_800_000_000.5, End: 1_800_000_010, Busy: 9, Rounds: 3, Outcome: "failed", Task: 7, Round: 2, Group: "a b <i>"}
		now := Bar{Slot: 2, Start: 1_800_000_001, End: 1_800_000_001, Rounds: 1, Outcome: BarRunning, Task: 8}
		for range 2 {
			expect.NoError(t, s.AddBars(ctx, "w", []Bar{one}, []Bar{now}))
		}
		later := now
		later.End, later.Busy, later.Outcome = 1_800_000_020, 19, "succeeded"
		expect.NoError(t, s.AddBars(ctx, "v", nil, []Bar{now}))
		expect.NoError(t, s.AddBars(ctx, "w", []Bar{later}, nil))
		got := expect.Result(s.Timelines(ctx, []string{"v", "w", "none"}, 1_800_000_000)).Value(t)
		expect.Equal(t, got, []Timeline{{Bars: []Bar{now}}, {Bars: []Bar{one, later}}, {}})
		expect.Equal(t, expect.Result(s.Timelines(ctx, []string{"w"}, 1_800_000_015)).Value(t), []Timeline{{Bars: []Bar{later}}}, "since a time")
		left := s.Redis.TTL(ctx, s.Keys.Timeline("w")).Val()
		expect.Compare(t, left, ">", 0)
		expect.Compare(t, left, "<=", timelineLife)

		var many []Bar
		for i := range MaxBars + 200 {
			one.Start, one.End = tdf.Time(1_800_000_100+i), tdf.Time(1_800_000_101+i)
			many = append(many, one)
		}
		expect.NoError(t, s.AddBars(ctx, "w", many, []Bar{now}))
		got = expect.Result(s.Timelines(ctx, []string{"w"}, 0)).Value(t)
		expect.MustTrue(t, got[0].Full, "the latest bars", len(got[0].Bars))
		expect.MustLen(t, got[0].Bars, MaxBars)
		expect.MustEqual(t, got[0].Bars[MaxBars-1], now)
		expect.Equal(t, got[0].Bars[0].End, 1_800_000_302)
	})
}

// Values that no worker has written are ignored.
func TestHostileTimeline(t *testing.T) {
	s := of(conntest.New(t))
	ctx := t.Context()
	good := Bar{Slot: 1, Start: 1_800_000_000, End: 1_800_000_010, Busy: 1, Rounds: 1, Outcome: "failed", Task: 7}
	expect.NoError(t, s.AddBars(ctx, "w", []Bar{good}, nil))
	for i, text := range []string{
		"", "x", "1 2 3", good.text() + strings.Repeat("x", 10<<20), "0 1 2 1 1 failed 1 0 ", "-1 1 2 1 1 failed 1 0 ", "1 3 2 1 1 failed 1 0 ", "1 1 9e18 1 1 failed 1 0 ", "1 1 inf 1 1 failed 1 0 ",
		"1 nan 2 1 1 failed 1 0 ", "1 1 2 1 0 failed 1 0 ", "1 1 2 1 1 <b> 1 0 ", "1 1 2 1 1 failed 0 0 ", "1 1 2 1 1 failed 1 -1 ", "1 1 2 inf 99999999999999999999 failed 1 0 ", "999999999 1 2 1 1 failed 1 0 ",
	} {
		expect.NoError(t, s.Redis.ZAdd(ctx, s.Keys.Timeline("w"), redis.Z{Score: float64(1_800_000_000 + i), Member: text}).Err())
	}
	expect.NoError(t, s.Redis.Set(ctx, s.Keys.Timeline("v"), "no sorted set", 0).Err())
	got := expect.Result(s.Timelines(ctx, []string{"v", "w"}, 0)).Value(t)
	expect.Equal(t, got, []Timeline{{}, {Bars: []Bar{good}}})
	expect.True(t, s.AddBars(ctx, "v", []Bar{good}, nil) != nil, "a key of another type is no error")
	long := good
	long.Group = strings.Repeat("ä", 1000)
	b, ok := parseBar(long.text())
	expect.True(t, ok, "a long name", b.Group)
	expect.Equal(t, b.Group, strings.Repeat("ä", barGroup/2))
}
