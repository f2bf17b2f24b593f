package admin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// timed is a store with a clock that only the test moves on, and a server that was seen so long ago.
type timed struct {
	store
	now    tdf.Time
	silent tdf.Seconds
}

func (s *timed) Now(context.Context) (tdf.Time, error) { return s.now, nil }

func (s *timed) LastServerHeartbeat(context.Context) (tdf.Time, error) {
	return s.now.Add(-s.silent), nil
}

// Looks come far more often than runs end, and still it is told when none does; also that one does again.
func TestWatchSaysThatNothingMoves(t *testing.T) {
	a := onEmbedded(t)
	archive(t, a, 20, func(_ int, h tdf.Hash) { h["0:seconds"] = "0.5" })
	s := redisOf(t, a)
	if _, _, err := s.TakeName(t.Context(), redisstate.WorkerInfo{Name: "w", State: "working", Slots: 2, Lease: 36000}, redisstate.PriorOwner{}); err != nil {
		t.Fatal(err)
	}
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock := &timed{s, now, 0}
	w := a.Watch("")
	w.store = clock
	look := func(seconds int) (e Estimate) {
		for range seconds {
			clock.now++
			status, err := w.Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			e = status.Estimate
		}
		return e
	}
	if e := look(100); e != (Estimate{}) {
		t.Errorf("nothing is to be done, and it says %+v", e)
	}
	if _, err := a.manager.Open(t.Context(), testspace.Define("p", "rsync:/p/run.sh", ""), testspace.Define("p", "rsync:/p/run.sh", "")); err != nil {
		t.Fatal(err)
	}
	if e := look(55); e.Unknown != "" || e.High == 0 {
		t.Errorf("there has not been much time yet, and it says %+v", e)
	}
	if e := look(20); !strings.HasPrefix(e.Unknown, "no task has finished") {
		t.Errorf("nothing has ended for 75 s, and it says %+v", e)
	}
	if _, err := a.manager.Cancel(t.Context(), manager.ByIDs(21)...); err != nil {
		t.Fatal(err)
	}
	if e := look(1); e.Unknown != "" {
		t.Errorf("one has ended, and it says %+v", e)
	}
}

// Without a server no time is told, though tasks are run: at once where one was missed already, else as soon as it should have come.
func TestWatchSaysThatNothingIsSettled(t *testing.T) {
	const none = "no server settles executed tasks"
	a := onEmbedded(t)
	for name, c := range map[string]struct {
		counts manager.Counts
		silent tdf.Seconds
		want   string
	}{
		"it is there":              {manager.Counts{tdf.Open: 9, tdf.Executed: 9}, 3, ""},
		"something waits for it":   {manager.Counts{tdf.Open: 9, tdf.Executed: 9}, 6, none},
		"nothing waits for it yet": {manager.Counts{tdf.Open: 9}, 6, ""},
		"it is missing":            {manager.Counts{tdf.Open: 9}, 11, none},
		"only its work is left":    {manager.Counts{tdf.Executed: 9}, 11, none},
		"all is done":              {manager.Counts{tdf.Succeeded: 9}, 11, ""},
	} {
		w := a.Watch("")
		w.runs = []tdf.Seconds{1, 1, 1}
		worker := redisstate.WorkerStatus{WorkerInfo: redisstate.WorkerInfo{State: "working", Slots: 1, Lease: 30}, Seen: testNow}
		fleet := fleet{at: testNow, server: testNow.Add(-c.silent), workers: []redisstate.WorkerStatus{worker}}
		if s := w.status(&look{at: testNow, counts: c.counts, fleet: fleet}); s.Estimate.Unknown != c.want {
			t.Errorf("%s: %+v, want %q", name, s.Estimate, c.want)
		}
	}
}

// archiving is a store in which tasks are archived whenever they have been counted.
type archiving struct {
	store
	archive func()
}

func (s *archiving) Counts(ctx context.Context, groups ...string) (redisstate.Counts, error) {
	counts, err := s.store.Counts(ctx, groups...)
	s.archive()
	return counts, err
}

func archiveOne(t *testing.T, s *redisstate.Store, id int64) {
	t.Helper()
	stored, err := s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		t.Fatal(err)
	}
	move, _ := stored.Task.Archive()
	if outcomes, err := s.Apply(t.Context(), "somebody", redisstate.Unit{Moves: []tdf.Move{move}}); err != nil || outcomes[0].Err != nil {
		t.Fatal(outcomes, err)
	}
}

// Each task has one outcome, also one that is archived while they are counted.
func TestOutcomesWhileTasksAreArchived(t *testing.T) {
	for _, group := range []string{"", "g"} {
		a := onEmbedded(t)
		archive(t, a, 300, func(i int, h tdf.Hash) {
			h["group"] = "g"
			if i > 10 {
				h["state"], h["0:succeeded"] = "succeeded", h["0:archived"]
				delete(h, "0:archived")
			}
		})
		s := redisOf(t, a)
		outcomes, err := outcomesOf(t.Context(), &archiving{s, func() {
			for id := range int64(100) {
				archiveOne(t, s, id+20)
			}
		}}, group)
		if got := fmt.Sprint(outcomes); err != nil || got != "map[succeeded:300]" {
			t.Errorf("group %q: %s, %v", group, got, err)
		}
	}
}
