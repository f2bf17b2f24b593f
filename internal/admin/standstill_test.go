package admin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A timed store has a clock that only the test advances. The field silent is the number of seconds since the last heartbeat
// of a server.
type timed struct {
	store
	now    task.Time
	silent task.Seconds
}

func (s *timed) Now(context.Context) (task.Time, error) { return s.now, nil }

func (s *timed) LastServerHeartbeat(context.Context) (task.Time, error) {
	return s.now.Add(-s.silent), nil
}

// If no task has finished for a long time, a watch gives no estimate and says why, even if Look is called far more
// often than tasks finish. As soon as a task finishes, the watch gives an estimate again.
func TestWatchSaysThatNothingMoves(t *testing.T) {
	a, m := onEmbedded(t)
	archive(t, a, 20, func(_ int, h task.Hash) { h["0:seconds"] = "0.5" })
	s := a.redis()
	_, _, err := s.Presence.TakeName(t.Context(), presence.WorkerInfo{Name: "w", State: "working", Slots: 2, Lease: 36000}, presence.PriorOwner{})
	expect.NoError(t, err)
	now := expect.Result(s.Now(t.Context())).Value(t)
	clock := &timed{storeOf(s), now, 0}
	w := a.Watch("")
	w.sights[0].store = clock
	look := func(seconds int) (e Estimate) {
		for range seconds {
			clock.now++
			status := expect.Result(w.Look(t.Context())).Value(t)
			e = status.Estimate
		}
		return e
	}
	expect.Equal(t, look(100), Estimate{}, "without tasks")
	expect.Result(m.Open(t.Context(), testspace.Define("p", "rsync:/p/run.sh", ""), testspace.Define("p", "rsync:/p/run.sh", ""))).OK(t)
	e := look(55)
	expect.Equal(t, e.Unknown, "")
	expect.NotEqual(t, e.High, 0)
	if e := look(20); !strings.HasPrefix(e.Unknown, "the last task finished longer ago") {
		t.Errorf("after 75 s without a finished task: %+v", e)
	}
	expect.Result(m.Cancel(t.Context(), manager.ByIDs(21)...)).OK(t)
	expect.Equal(t, look(1).Unknown, "", "after a task has finished")
	before := look(1)
	expect.NoError(t, m.Pauses().Begin(t.Context(), task.Everything))
	expect.Equal(t, look(100).Unknown, "the tasks are paused")
	expect.NoError(t, m.Pauses().End(t.Context(), task.Everything))
	expect.Equal(t, look(11), before, "after the pause")
	expect.Compare(t, w.seen[len(w.seen)-1].at.Sub(w.seen[0].at), "<=", 11, "seconds that count")
}

// If no server is seen, the watch gives no estimate. If executed tasks wait, the watch reports the missing server as soon
// as the server's heartbeat is overdue.
func TestWatchSaysThatNothingIsSettled(t *testing.T) {
	const none = "no server is alive"
	a, _ := onEmbedded(t)
	for name, c := range map[string]struct {
		counts task.Counts
		silent task.Seconds
		want   string
	}{
		"a server is alive":                  {task.Counts{task.Open: 9, task.Executed: 9}, 3, ""},
		"executed tasks wait for the server": {task.Counts{task.Open: 9, task.Executed: 9}, 6, none},
		"no task waits for the server yet":   {task.Counts{task.Open: 9}, 6, ""},
		"the server is missing":              {task.Counts{task.Open: 9}, 11, none},
		"only executed tasks are left":       {task.Counts{task.Executed: 9}, 11, none},
		"all tasks are finished":             {task.Counts{task.Succeeded: 9}, 11, ""},
	} {
		w := a.Watch("")
		worker := presence.WorkerStatus{WorkerInfo: presence.WorkerInfo{State: "working", Slots: 1, Lease: 30}, Seen: testNow}
		fleet := fleet{at: testNow, server: testNow.Add(-c.silent), workers: []presence.WorkerStatus{worker}}
		l := &look{at: testNow, counts: c.counts, fleet: fleet, census: fleet.count(), runs: []task.Seconds{1, 1, 1}}
		l.unsettled = l.isUnsettled()
		expect.Equal(t, w.status(l).Estimate.Unknown, c.want, name)
	}
}

// An archiving store calls the function in its field archive after each call of Counts.
type archiving struct {
	store
	archive func()
}

func (s *archiving) Counts(ctx context.Context, groups ...string) (task.Counts, error) {
	counts, err := s.store.Counts(ctx, groups...)
	s.archive()
	return counts, err
}

func archiveOne(t *testing.T, s *redisstate.Store, id int64) {
	t.Helper()
	stored := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Rules})).Value(t)
	move, _ := rules.Archive(stored.Task)
	outcomes := expect.Result(s.Apply(t.Context(), "operator", redisstate.Unit{Moves: []rules.Move{move}})).Value(t)
	expect.NoError(t, outcomes[0].Err)
}

// Each task counts once, even if it is archived during the count.
func TestOutcomesWhileTasksAreArchived(t *testing.T) {
	for _, group := range []string{"", "g"} {
		a, _ := onEmbedded(t)
		archive(t, a, 300, func(i int, h task.Hash) {
			h["group"] = "g"
			if i > 10 {
				h["state"], h["0:succeeded"] = "succeeded", h["0:archived"]
				delete(h, "0:archived")
			}
		})
		s := a.redis()
		outcomes, err := outcomesOf(t.Context(), &archiving{storeOf(s), func() {
			for id := range int64(100) {
				archiveOne(t, s, id+20)
			}
		}}, group)
		got := fmt.Sprint(outcomes)
		expect.NoError(t, err, "group", group)
		expect.Equal(t, got, "map[succeeded:300]", "group", group)
	}
}
