package redisstate_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// limitTasks sets max_tasks, and makes the client obey it at once.
func limitTasks(t *testing.T, s *redisstate.Store, value string) {
	t.Helper()
	must(t, s.ChangeSetting(t.Context(), task.SettingMaxTasks, value))
	forgetRoom(s)
}

// forgetRoom makes the client read the settings and the memory again.
func forgetRoom(s *redisstate.Store) {
	s.SetRoomRead(time.Time{})
}

// tooMany reports whether err is the error of an open that max_tasks refuses.
func tooMany(err error, tasks, limit int64) bool {
	e := new(task.TasksLimitError)
	return errors.As(err, &e) && *e == task.TasksLimitError{Tasks: tasks, MaxTasks: limit}
}

// The limit counts tasks in all states. Removing a task makes room. An open that does not fit opens nothing.
func TestMaxTasks(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for _, state := range task.States[1:] {
			put(t, s, state)
		}
		put(t, s, task.Open)
		stored := int64(len(task.States))
		limitTasks(t, s, strconv.FormatInt(stored+2, 10))
		before := dump(t, s)
		if ids, err := s.Open(t.Context(), "m", define("a"), define("b"), define("c")); !tooMany(err, stored+3, stored+2) || len(ids) > 0 {
			t.Errorf("opened %v, %v", ids, err)
		}
		expect.Equal(t, changed(t, before, dump(t, s)), "")
		mustOpen(t, s, define("a"), define("b"))
		if _, err := s.OpenAll(t.Context(), "m", "", keyed("k", task.UntilFinished)); !tooMany(err, stored+3, stored+2) {
			t.Error(err)
		}
		ids := expect.Result(s.List(t.Context(), task.Archived, "", 0, 1)).Value(t)
		mustMove(t, s, ids[0], rules.Remove)
		opened := mustOpenUnique(t, s, keyed("k", task.UntilFinished))
		expect.True(t, !opened.Existing, "a task that was not opened holds its key")
		limitTasks(t, s, "inf")
		mustOpen(t, s, define("d"))
		mustBeSound(t, s)
	})
}

// A call for many units opens those that fit. A refused unit takes no unique key, and an existing task needs no room.
func TestMaxTasksWithinACall(t *testing.T) {
	s := newStore(t)
	limitTasks(t, s, "3")
	a, b := keyed("a", task.UntilFinished), keyed("b", task.UntilFinished)
	outcomes, err := s.Apply(t.Context(), "m",
		redisstate.Unit{Open: []task.Properties{a, define("p")}},
		redisstate.Unit{Open: []task.Properties{b, define("p")}},
		redisstate.Unit{Open: []task.Properties{b}},
		redisstate.Unit{Open: []task.Properties{a, b}},
		redisstate.Unit{Open: []task.Properties{define("q")}},
	)
	must(t, err)
	var got []string
	for _, o := range outcomes {
		got = append(got, fmt.Sprint(o.IDs, o.Existing, o.Err != nil))
	}
	want := "[1 2] [] false; [] [] true; [3] [] false; [1 3] [true true] false; [] [] true"
	expect.Equal(t, strings.Join(got, "; "), want)
	mustBeSound(t, s)
}

// A manager can archive a task with its follow-ups, even above the limit.
func TestMaxTasksRefusesNoFollowUp(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Succeeded)
	limitTasks(t, s, "1")
	m := expect.Result(rules.Archive(read(t, s, id))).Value(t)
	outcomes, err := s.Apply(t.Context(), "m",
		redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("x"), define("y")}}, redisstate.Unit{Open: []task.Properties{define("z")}})
	expect.NoError(t, err)
	expect.NoError(t, outcomes[0].Err)
	expect.MustLen(t, outcomes[0].IDs, 2)
	expect.True(t, tooMany(outcomes[1].Err, 4, 1), outcomes, err)
	if _, err := s.Open(t.Context(), "m", define("z")); !tooMany(err, 4, 1) {
		t.Error(err)
	}
	mustBeSound(t, s)
}

// Many clients never exceed the limit together.
func TestMaxTasksOfManyClients(t *testing.T) {
	s := newStore(t)
	const most = 100
	limitTasks(t, s, strconv.Itoa(most))
	var all sync.WaitGroup
	for range 8 {
		client := connect(t, s.Conn.Addr, s.Keys.Namespace())
		all.Go(func() {
			for i := 0; ; i++ {
				var err error
				if i%2 == 0 {
					_, err = client.Open(t.Context(), "m", define("a"), define("b"))
				} else {
					_, err = client.OpenAll(t.Context(), "m", "", keyed(client.Conn.Boot()+strconv.Itoa(i), task.UntilFinished))
				}
				if err != nil {
					expect.True(t, errors.As(err, new(*task.TasksLimitError)), err)
					return
				}
			}
		})
	}
	all.Wait()
	counts := expect.Result(s.Counts(t.Context())).Value(t)
	expect.Compare(t, counts.Total(), "<=", most)
	expect.Compare(t, counts.Total(), ">=", most-1, most, "or one less")
	mustBeSound(t, s)
}

// A repeated call whose reply was lost gets the first answer, also if the limit is reached meanwhile.
func TestMaxTasksAndLostReplies(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	limitTasks(t, s, "2")
	proxy.DropReplies(2, redistest.Scripts)
	expect.Equal(t, fmt.Sprint(mustOpen(t, s, define("a"), define("b"))), "[1 2]", "opened")
	mustBeSound(t, s)
}

// Values that another client wrote do no harm: an invalid value counts as the default.
func TestInvalidSettings(t *testing.T) {
	s := newStore(t)
	for _, value := range []string{"", "0", "-5", "NaN", "many", strings.Repeat("9", 400), "\x00"} {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Settings(), "max_tasks", value, "high_water", value, "other", value).Err())
		settings, invalid, _, err := s.Room(t.Context())
		expect.NoError(t, err, value)
		expect.Fails(t, invalid, "", value)
		expect.Equal(t, settings, task.DefaultSettings(), value)
		forgetRoom(s)
		mustOpen(t, s, define("x"))
	}
	expect.Fails(t, s.ChangeSetting(t.Context(), "other", "1"), "", "an unknown setting was changed")
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Settings()).Err())
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Settings(), "text", 0).Err()) // written after the client's start
	if settings, _, _, err := s.Room(t.Context()); err != nil || settings != task.DefaultSettings() {
		t.Errorf("%+v, %v", settings, err)
	}
}

// limited returns a Store whose Redis has a maxmemory of which the given part is used.
func limited(t *testing.T) (s *redisstate.Store, lines <-chan string, use func(part float64)) {
	t.Helper()
	server := redistest.Start(t)
	log, lines := logged()
	s = expect.Result(redisstate.Connect(t.Context(), conntest.Config(t, server.Addr), "limited", log)).Value(t)
	t.Cleanup(func() { s.Close() })
	return s, lines, func(part float64) {
		t.Helper()
		must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", "0").Err())
		_, _, m, err := s.Room(t.Context())
		must(t, err)
		must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", fmt.Sprintf("%.0f", float64(m.Used)/part)).Err())
		forgetRoom(s)
	}
}

// Above high_water, new tasks wait, and the log says so once. Follow-ups, results and removals do not wait.
func TestOpensWaitForMemory(t *testing.T) {
	t.Parallel()
	s, lines, use := limited(t)
	mustOpen(t, s, define("a"), define("b"))
	claims := mustClaim(t, s, 1)
	use(0.85)
	opened := make(chan error, 2)
	go func() { _, err := s.Open(t.Context(), "m", define("c")); opened <- err }()
	go func() { _, err := s.OpenAll(t.Context(), "m", "", keyed("k", task.UntilFinished)); opened <- err }()
	line := <-lines
	expect.Contains(t, line, "new tasks wait")
	expect.Contains(t, line, "remedy=")
	mustExecute(t, s, claims[0], rules.Result{Exit: "0"})
	mustSettle(t, s, 1)
	m := expect.Result(rules.Archive(read(t, s, 1))).Value(t)
	outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("follow-up")}})).Value(t)
	expect.NoError(t, outcomes[0].Err)
	expect.Len(t, mustClaim(t, s, 1), 1, "claims wait, too")
	mustMove(t, s, 1, rules.Remove)
	select {
	case err := <-opened:
		t.Errorf("opened above high_water: %v", err)
	default:
	}
	use(0.5)
	for range 2 {
		must(t, <-opened)
	}
	expect.Contains(t, <-lines, "enough memory again")
	mustBeSound(t, s)
	select {
	case line := <-lines:
		t.Errorf("logged twice: %s", line)
	default:
	}
}

// The end of the context ends the wait. The error says why the call waited.
func TestWaitForMemoryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, lines, use := limited(t)
	use(0.85)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-lines; cancel() }()
	_, err := s.Open(ctx, "m", define("a"))
	expect.FailsWith(t, err, context.Canceled)
	expect.Contains(t, err.Error(), "maxmemory")
	expect.Equal(t, expect.Result(s.Counts(t.Context())).Value(t).Total(), 0)
}

// Above 0.95 of maxmemory, claims return at once without tasks. Results are stored.
func TestClaimsWaitForMemory(t *testing.T) {
	t.Parallel()
	s, lines, use := limited(t)
	mustOpen(t, s, define("a"), define("b"), define("c"))
	claims := mustClaim(t, s, 1)
	use(0.97)
	r := redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60}
	for range 2 {
		if c, err := s.Claim(t.Context(), r); err != nil || !c.MustWait || len(c.Claims) > 0 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	m := expect.Result(rules.Execute(claims[0].Task, claims[0].ID, rules.Result{Exit: "0"})).Value(t)
	outcomes, c, err, claimErr := s.Turn(t.Context(), t.Context(), r, m)
	expect.NoError(t, err)
	expect.NoError(t, claimErr)
	expect.NoError(t, outcomes[0].Err)
	expect.Len(t, c.Claims, 0)
	expect.Contains(t, <-lines, "claims wait")
	use(0.9)
	expect.Len(t, expect.Result(s.Claim(t.Context(), r)).Value(t).Claims, 1)
	expect.Contains(t, <-lines, "enough memory again")
}

// A client reads the settings and the memory at most once a second, however many calls it makes.
func TestRoomCostsNoCommandPerCall(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, "ns")
	mustOpen(t, s, define("x"))
	s.SetRoomRead(time.Now().Add(time.Hour)) // the values stay fresh during the test
	must(t, s.Conn.Redis.ConfigResetStat(t.Context()).Err())
	for range 20 {
		mustOpen(t, s, define("x"))
		mustClaim(t, s, 1)
	}
	stats := s.Conn.Redis.Info(t.Context(), "commandstats").Val()
	expect.True(t, !strings.Contains(stats, "cmdstat_info"), stats)
}

// Claims read the memory of a Redis without maxmemory more rarely, because they never wait for it.
func TestClaimsReadTheMemoryOfARedisWithoutLimitRarely(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	now := time.Now()
	s.SetRoomClock(func() time.Time { return now })
	reads := func(age time.Duration) int {
		t.Helper()
		s.SetRoomRead(now.Add(-age))
		before := commandCalls(t, s, "info")
		expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).OK(t)
		return commandCalls(t, s, "info") - before - 1 // commandCalls itself reads INFO
	}
	reads(time.Hour)
	expect.Equal(t, reads(2*redisstate.RoomForClaims), 0, "without maxmemory, after 10 s")
	expect.Equal(t, reads(redisstate.RoomWithoutLimit), 1, "without maxmemory, after 30 s")
	must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", "1gb").Err())
	reads(time.Hour)
	expect.Equal(t, reads(2*redisstate.RoomForClaims), 1, "with maxmemory, after 10 s")
}

// A client of the HTTP API does not wait above high_water, and a submitter has at most half of the memory that others leave. Its tasks
// count however they were opened.
func TestShareOfMemory(t *testing.T) {
	t.Parallel()
	s, lines, use := limited(t)
	eve := redisstate.WithOpener(t.Context(), &redisstate.Opener{Owner: "eve"})
	of := func(owner string) task.Properties {
		d := define(strings.Repeat("x", 100_000))
		d.Owner = owner
		return d
	}
	for range 40 {
		expect.Result(s.Open(t.Context(), "m", of("eve"))).OK(t)
		expect.Result(s.Open(t.Context(), "m", of("bob"))).OK(t)
	}
	use(0.3)
	expect.Result(s.Open(eve, "m", of("eve"))).OK(t, "below half of high_water")
	use(0.7)
	_, err := s.Open(eve, "m", of("eve"))
	expect.Equal(t, task.CodeOf(err), task.CodeFull)
	expect.Fails(t, err, "a submitter may have half of what others leave")
	follow := redisstate.Unit{Open: []task.Properties{of("eve")}}
	_, err = s.Apply(eve, "m", follow)
	expect.Fails(t, err, "a submitter may have half of what others leave", "a transaction")
	expect.Fails(t, s.CheckShare(t.Context(), "bob"), "the tasks of bob take about")
	expect.NoError(t, s.CheckShare(t.Context(), "ann"))
	expect.Result(s.Open(redisstate.WithOpener(t.Context(), &redisstate.Opener{Owner: "ann"}), "m", of("ann"))).OK(t, "another submitter")
	expect.Result(s.Open(redisstate.WithOpener(t.Context(), &redisstate.Opener{}), "m", of(""))).OK(t, "an operator")
	use(0.85)
	_, err = s.Open(redisstate.WithOpener(t.Context(), &redisstate.Opener{}), "m", of(""))
	expect.Equal(t, task.CodeOf(err), task.CodeFull)
	expect.Fails(t, err, "new tasks wait above 0.8 (high_water)")
	expect.Contains(t, <-lines, "new tasks wait")
}
