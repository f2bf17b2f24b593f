package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/periodics"
)

// begin is the time at which the tests store their periodics. They never read Redis's clock.
const begin = task.Time(1893456000) // 2030-01-01 00:00:00 UTC

func minute(n int) task.Time { return begin.Add(task.Seconds(60 * n)) }

// periodic stores a periodic that opens a task each minute, unless change changes it.
func (s *site) periodic(name string, change ...func(*task.Periodic, []task.Properties)) {
	s.Helper()
	p, tasks := task.Periodic{Name: name, Schedule: "* * * * *"}, []task.Properties{define()}
	for _, c := range change {
		c(&p, tasks)
	}
	r := expect.Result(task.NewPeriodicRecord(p, tasks, begin)).Value(s)
	before := expect.Result(periodics.Of(s.store).PeriodicText(s.Context(), name)).Value(s)
	expect.Result(periodics.Of(s.store).ChangePeriodic(s.Context(), "ann", name, before, r.String())).OK(s)
}

func (s *site) record(name string) *task.PeriodicRecord {
	s.Helper()
	text := expect.Result(periodics.Of(s.store).PeriodicText(s.Context(), name)).Value(s)
	return expect.Result(task.ParsePeriodic(name, text)).Value(s)
}

// at makes the server look at its periodics at a time, and checks what then is known of the last time: its minute, the
// outcome and a part of the reason. It also checks the number of all tasks.
func (s *site) at(now task.Time, lastMinute int, outcome task.PeriodicOutcome, why string, tasks int64) {
	s.Helper()
	expect.NoError(s, s.server.openPeriodic(s.Context(), now))
	r := s.record("p")
	expect.MustTrue(s, r.Last != nil, "no time has come")
	expect.Equal(s, r.Last.Time, minute(lastMinute))
	expect.Equal(s, r.Last.Outcome, outcome)
	expect.Contains(s, r.Last.Why, why)
	expect.Equal(s, expect.Result(s.store.Counts(s.Context())).Value(s).Total(), tasks)
}

func overlapping(p *task.Periodic, _ []task.Properties) { p.Overlap = task.OverlapOpen }

func (s *site) cancel(id int64) {
	s.Helper()
	m := expect.Result(rules.Cancel(s.task(id))).Value(s)
	outcomes := expect.Result(s.store.Apply(s.Context(), "ann", redisstate.Unit{Moves: []rules.Move{m}})).Value(s)
	expect.NoError(s, outcomes[0].Err)
}

// Each time opens the tasks once. While they are unfinished, the times are skipped.
func TestPeriodicOpensEachTimeOnce(t *testing.T) {
	onEach(t, func(s *site) {
		s.periodic("p", func(_ *task.Periodic, tasks []task.Properties) { tasks[0].Group, tasks[0].Priority = "g", 3 })
		expect.NoError(s, s.server.openPeriodic(s.Context(), begin))
		expect.Equal(s, s.record("p").Next, minute(1))
		s.at(minute(1), 1, task.PeriodicOpened, "", 1)
		s.at(minute(1)+1, 1, task.PeriodicOpened, "", 1)
		one := s.task(1)
		expect.Equal(s, one.Group, "g")
		expect.Equal(s, one.Priority, 3)
		expect.Contains(s, one.Log, "periodic p: open")
		expect.Equal(s, s.record("p").IDs, []int64{1})
		s.at(minute(2), 2, task.PeriodicSkipped, "such as task 1", 1)
		s.execute(s.claim(60), rules.Result{Exit: "0"})
		s.at(minute(3), 3, task.PeriodicSkipped, "such as task 1", 1)
		s.round()
		s.at(minute(4), 4, task.PeriodicOpened, "", 2)
		s.at(minute(9), 9, task.PeriodicSkipped, "such as task 2", 2)
		s.cancel(2)
		s.at(minute(20), 20, task.PeriodicOpened, "the times from 2030-01-01 00:10:00 UTC to this one were missed", 3)
		s.at(minute(5), 20, task.PeriodicOpened, "", 3) // the clock was set back
		s.periodic("p", overlapping)
		s.at(minute(21), 21, task.PeriodicOpened, "", 4)
		s.at(minute(22), 22, task.PeriodicOpened, "", 5)
		expect.Equal(s, s.record("p").IDs, []int64{5})
		s.periodic("p", func(p *task.Periodic, _ []task.Properties) { p.Missed, p.Overlap = task.MissedAll, task.OverlapOpen })
		s.at(minute(30), 30, task.PeriodicOpened, "", 35) // from the first minute on
		s.at(minute(30)+11, 30, task.PeriodicOpened, "", 35)
		s.at(minute(1030), 1030, task.PeriodicOpened, "", 135) // only the newest
		s.periodic("p", func(p *task.Periodic, _ []task.Properties) { p.Missed = task.MissedNone })
		s.at(minute(2000)+61, 2001, task.PeriodicOpened, "were missed", 136)
		s.checkConsistent()
	})
}

// The tasks of one time may wait for each other, and a unique key is not opened twice.
func TestPeriodicTasksBelongTogether(t *testing.T) {
	s := newSite(t)
	first, second, unique := define(), define(), define()
	second.After, unique.Unique = &task.Dependencies{Places: []int{0}}, "key"
	r := expect.Result(task.NewPeriodicRecord(task.Periodic{Name: "p", Schedule: "@every 1m", Overlap: task.OverlapOpen},
		[]task.Properties{first, second, unique}, begin)).Value(t)
	expect.Result(periodics.Of(s.store).ChangePeriodic(s.Context(), "ann", "p", "", r.String())).OK(t)
	s.at(minute(1), 1, task.PeriodicOpened, "", 3)
	s.at(minute(2), 2, task.PeriodicOpened, "", 5)
	expect.Equal(s, s.record("p").IDs, []int64{4, 5, 3})
	expect.Equal(s, s.task(5).After.Tasks, []int64{4})
}

// A disturbed store does something before or after each step that opens tasks.
type disturbed struct {
	Store
	before func()
	after  error
}

func (d disturbed) ChangePeriodic(
	ctx context.Context, who, name, from, to string, open ...task.Properties,
) ([]int64, error) {
	if d.before != nil && len(open) > 0 {
		d.before()
	}
	ids, err := d.Store.ChangePeriodic(ctx, who, name, from, to, open...)
	return ids, errors.Join(err, d.after)
}

// Several servers open each time once, also if one of them is killed during the step, and if a user changes the
// periodic during it.
func TestPeriodicOfSeveralServers(t *testing.T) {
	onEach(t, func(s *site) {
		s.periodic("p", overlapping)
		other := New("other", settings, connect(s.T, s.addr, s.ns), quiet())
		for n := 1; n <= 20; n++ {
			var both sync.WaitGroup
			for _, server := range []*Server{s.server, other} {
				both.Go(func() { expect.NoError(s, server.openPeriodic(s.Context(), minute(n))) })
			}
			both.Wait()
			s.at(minute(n), n, task.PeriodicOpened, "", int64(n))
		}
		killed, kill := context.WithCancel(s.Context())
		victim := NewOn("victim", settings, disturbed{Store: StoreOf(s.store), after: context.Canceled}, quiet())
		expect.NoError(s, victim.readPeriodics(s.Context(), minute(21)))
		kill()
		expect.NoError(s, victim.openPeriodic(killed, minute(21))) // killed before the step
		s.at(minute(20), 20, task.PeriodicOpened, "", 20)
		expect.NoError(s, victim.openPeriodic(s.Context(), minute(21))) // its answer is lost
		s.at(minute(21), 21, task.PeriodicOpened, "", 21)
		for n, change := range []func(){
			func() {
				s.periodic("p", overlapping, func(p *task.Periodic, _ []task.Properties) { p.Schedule = "@hourly" })
			},
			func() { s.do("HDEL", "$periodic", "p") },
		} {
			if n > 0 {
				s.periodic("p", overlapping)
			}
			slow := NewOn("slow", settings, disturbed{Store: StoreOf(s.store), before: change}, quiet())
			expect.NoError(s, slow.openPeriodic(s.Context(), minute(30)))
			expect.NoError(s, slow.openPeriodic(s.Context(), minute(31)))
			expect.Equal(s, expect.Result(s.store.Counts(s.Context())).Value(s).Total(), 21, n)
		}
	})
}

// If tasks cannot be opened, the record says why, and the next time is tried. A paused or an invalid periodic opens
// nothing.
func TestPeriodicFailures(t *testing.T) {
	s := newSite(t)
	log := &testlog.Buffer{}
	s.server.log = slog.New(slog.NewTextHandler(log, nil))
	s.periodic("p", func(_ *task.Periodic, tasks []task.Properties) {
		tasks[0].Source = "redis:" + strings.Repeat("0", 64)
	})
	s.at(minute(1), 1, task.PeriodicFailed, "program", 0)
	s.at(minute(1)+1, 1, task.PeriodicFailed, "program", 0)
	expect.Equal(s, s.record("p").Next, minute(2))
	s.periodic("p", func(_ *task.Periodic, tasks []task.Properties) { tasks[0].Group = "g" })
	s.at(minute(2), 2, task.PeriodicOpened, "", 1)
	s.cancel(1)
	expect.NoError(s, s.store.Groups.CloseGroup(s.Context(), "g"))
	s.at(minute(3), 3, task.PeriodicFailed, "closed", 1)
	s.periodic("p", overlapping)
	expect.NoError(s, s.store.ChangeSetting(s.Context(), task.SettingMaxTasks, "2"))
	s.at(minute(4), 4, task.PeriodicOpened, "", 2)
	s.at(minute(5), 5, task.PeriodicFailed, "max_tasks", 2)
	expect.Equal(s, s.record("p").IDs, []int64{2})
	expect.NoError(s, s.store.ChangeSetting(s.Context(), task.SettingMaxTasks, "inf"))
	s.at(minute(6), 6, task.PeriodicOpened, "", 3)
	paused := *s.record("p")
	paused.PausedBy = "ann"
	s.do("HSET", "$periodic", "p", paused.String())
	s.at(minute(7), 6, task.PeriodicOpened, "", 3)
	s.do("HSET", "$periodic", "p", "{", "q", strings.Replace(paused.String(), "* * * * *", "@every 1ns", 1))
	for n := 8; n < 11; n++ {
		expect.NoError(s, s.server.openPeriodic(s.Context(), minute(n)))
	}
	for _, name := range []string{"p", "q"} {
		expect.Equal(s, strings.Count(log.String(), fmt.Sprintf(`periodic \"%s\"`, name)), 1, name)
	}
	s.do("SET", "$periodic", "x")
	expect.NoError(s, s.server.openPeriodic(s.Context(), minute(12)))
}

// On a full Redis, the record still keeps the reason.
func TestPeriodicOnAFullRedis(t *testing.T) {
	s := newSiteAt(t, redistest.Start(t).Addr)
	s.periodic("p")
	s.do("CONFIG", "SET", "maxmemory", "1mb")
	s.store = connect(t, s.addr, s.ns)
	s.server = New("server", settings, s.store, quiet())
	s.at(minute(1), 1, task.PeriodicFailed, "redis", 0)
	s.do("CONFIG", "SET", "maxmemory", "0")
	s.store = connect(t, s.addr, s.ns)
	s.server = New("server", settings, s.store, quiet())
	s.at(minute(2), 2, task.PeriodicOpened, "", 1)
}

// A round of a server opens what is due.
func TestARoundOpensPeriodics(t *testing.T) {
	onEach(t, func(s *site) {
		p := task.Periodic{Name: "p", Schedule: "@every 10s"}
		r := expect.Result(task.NewPeriodicRecord(p, []task.Properties{define()}, s.now().Add(-60))).Value(s)
		expect.Result(periodics.Of(s.store).ChangePeriodic(s.Context(), "ann", "p", "", r.String())).OK(s)
		s.round()
		s.mustBe(1, task.Open, 0)
	})
}
