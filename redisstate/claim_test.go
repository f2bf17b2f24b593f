package redisstate_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

func inputs(claims []redisstate.Claim) string {
	var all []string
	for _, c := range claims {
		all = append(all, c.Task.Input)
	}
	return strings.Join(all, " ")
}

func TestClaimIsFirstInFirstOut(t *testing.T) {
	s := newStore(t)
	var definitions []task.Properties
	var want []string
	for i := range 300 {
		definitions = append(definitions, define(fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	mustOpen(t, s, definitions[:150]...)
	mustOpen(t, s, definitions[150:]...)
	got := inputs(mustClaim(t, s, 100)) + " " + inputs(mustClaim(t, s, 1)) + " " + inputs(mustClaim(t, s, 1000))
	expect.Equal(t, got, strings.Join(want, " "), "claimed")
	expect.Len(t, mustClaim(t, s, 1), 0, "claimed once more")
	mustBeSound(t, s)
}

func TestReopenedTasksGoToTheBack(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"))
	a := mustClaim(t, s, 1)[0]
	m, err := rules.Release(a.Task, "not now")
	mustApply(t, s, m, err)
	expect.Equal(t, inputs(mustClaim(t, s, 2)), "b a", "claimed")
}

func TestClaimWaitsForStartAfter(t *testing.T) {
	s := newStore(t)
	now := expect.Result(s.Now(t.Context())).Value(t)
	later := define("later")
	later.StartAfter = now.Add(1000)
	mustOpen(t, s, later, define("now"), later)
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60})).Value(t)
	expect.Equal(t, inputs(c.Claims), "now")
	expect.Equal(t, c.Next.String(), later.StartAfter.String())
	got := read(t, s, 3)
	expect.Compare(t, got.Ready, ">", later.StartAfter)
	expect.Compare(t, got.Ready, "<=", later.StartAfter+0.001)
	mustBeSound(t, s)
}

// A claim skips invalid entries in the list of open tasks.
func TestClaimPassesInvalidEntries(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ctx := t.Context()
		write := func(id int, fields ...any) {
			s.Conn.Redis.HSet(ctx, s.Keys.Task(int64(id)), append([]any{"state", "open", "round", 0, "program", "p", "source", "rsync:/p/run.sh"}, fields...)...)
			s.Conn.Redis.ZAdd(ctx, s.Keys.List(task.Open), redis.Z{Member: id})
			s.Conn.Redis.Set(ctx, s.Keys.TaskID(), id, 0)
		}
		now, _ := s.Now(ctx)
		write(1, "end_before", (now - 5).String(), "max_fails", "0")
		write(2, "timeout", "soon")
		write(3, "round", "one")
		write(4, "state", "running")
		write(5, "start_after", now.Add(500).String())
		s.Conn.Redis.ZAdd(ctx, s.Keys.List(task.Open), redis.Z{Member: 6}) // this task has no hash
		write(7, "input", "good", "end_before", "inf", "timeout", "INF", "start_after", "0")
		expect.MustEqual(t, inputs(mustClaim(t, s, 1)), "good", "claimed")
		expect.MustLen(t, mustClaim(t, s, 1), 0, "claimed")
		got := read(t, s, 1)
		expect.Equal(t, got.State, task.Expired)
		expect.Equal(t, got.Outcome, "expired")
		expect.Contains(t, got.Log, " w: expired")
		open := s.Conn.Redis.ZRangeWithScores(ctx, s.Keys.List(task.Open), 0, -1).Val()
		expect.MustLen(t, open, 4)
		expect.MustEqual[any](t, open[3].Member, "5")
		expect.Equal(t, task.Time(open[3].Score).String(), now.Add(500).String())
	})
}

// A claim hands out no task whose claim_before has passed. A task that was claimed in time keeps running, and can be reported.
func TestClaimBefore(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		now := expect.Result(s.Now(t.Context())).Value(t)
		late, soon := define("late"), define("soon")
		late.ClaimBefore, soon.ClaimBefore, soon.Priority = now.Add(-1), now.Add(500), -1
		mustOpen(t, s, late, soon)
		due := s.Conn.Redis.ZScore(t.Context(), s.Keys.Due(), "2").Val()
		expect.Equal(t, task.Time(due).String(), soon.ClaimBefore.String(), "due")
		claims := mustClaim(t, s, 2)
		expect.MustEqual(t, inputs(claims), "soon", "claimed")
		expect.Len(t, mustClaim(t, s, 2), 0, "claimed once more")
		expect.Equal(t, read(t, s, 1).State, task.Expired, "the late task")
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(2), "claim_before", now.Add(-1).String())
		m, err := rules.Execute(claims[0].Task, claims[0].ID, rules.Result{Exit: "0"})
		mustApply(t, s, m, err)
		expect.Equal(t, read(t, s, 2).State, task.Executed, "the task that was claimed in time")
		mustBeSound(t, s)
	})
}

func TestClaimPassesHundredsOfInvalidTasks(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	for i := range 250 {
		s.Conn.Redis.HSet(ctx, s.Keys.Task(int64(i+1)), "state", "open", "round", 0, "timeout", "never")
		s.Conn.Redis.ZAdd(ctx, s.Keys.List(task.Open), redis.Z{Member: i + 1})
	}
	s.Conn.Redis.Set(ctx, s.Keys.TaskID(), 250, 0)
	mustOpen(t, s, define("good"))
	expect.Equal(t, inputs(mustClaim(t, s, 1)), "good", "claimed")
}

func TestRenew(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		d := define("x")
		d.Timeout = 100
		mustOpen(t, s, d)
		c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t).Claims[0]
		lease := task.Seconds(60)
		renew := func(r redisstate.LeaseRenewal) (task.Time, error) {
			r.ID, r.Round = 1, c.Task.Round
			renewed := expect.Result(s.Renew(t.Context(), lease, r)).Value(t)
			return renewed.Now, renewed.Lost[0]
		}
		fetching := expect.Result(renew(redisstate.LeaseRenewal{Claim: c.ID, Limit: 700})).Value(t)
		expect.Equal(t, read(t, s, 1).Deadline.String(), fetching.Add(700).String())
		begun, err := renew(redisstate.LeaseRenewal{Claim: c.ID, Begun: true, Limit: 100})
		got := read(t, s, 1)
		expect.NoError(t, err)
		expect.Equal(t, got.Deadline.String(), begun.Add(100).String())
		expect.Equal(t, got.Current().Started.String(), begun.String())
		now, err := renew(redisstate.LeaseRenewal{Claim: c.ID})
		if got := read(t, s, 1); err != nil || got.LeaseUntil.String() != now.Add(60).String() || got.Deadline.String() != begun.Add(100).String() {
			t.Errorf("renewed: lease until %v, deadline %v, %v", got.LeaseUntil, got.Deadline, err)
		}
		lease = 900
		long := expect.Result(renew(redisstate.LeaseRenewal{Claim: c.ID})).Value(t).Add(lease)
		for _, lease = range []task.Seconds{0.001, 60} { // a renewal shortens no lease
			expect.Result(renew(redisstate.LeaseRenewal{Claim: c.ID})).OK(t)
			expect.Equal(t, read(t, s, 1).LeaseUntil.String(), long.String())
			expect.Equal(t, read(t, s, 1).Lease, 900)
			expect.Equal(t, task.Time(s.Conn.Redis.ZScore(t.Context(), s.Keys.Due(), "1").Val()).String(), begun.Add(110).String())
		}
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), "lease_until", long.Add(1e6).String()) // as if the clock was set back
		set := expect.Result(renew(redisstate.LeaseRenewal{Claim: c.ID})).Value(t)
		expect.Equal(t, read(t, s, 1).LeaseUntil.String(), set.Add(900).String())
		lease = 0
		over := expect.Result(renew(redisstate.LeaseRenewal{Claim: c.ID})).Value(t)
		expect.Equal(t, read(t, s, 1).LeaseUntil.String(), over.String())
		expect.Result(renew(redisstate.LeaseRenewal{Claim: "another"})).Fails(t, "", "a renewal with another claim succeeded")
		mustExecute(t, s, c, rules.Result{Exit: "0"})
		expect.Result(renew(redisstate.LeaseRenewal{Claim: c.ID})).Fails(t, "", "the renewal of a reported claim succeeded")
	})
}

// The program has ended in time. While the worker collects the output, the task neither times out nor expires. Without a
// result, it expires when the time that the worker asked for is over.
func TestRenewAfterTheEndOfTheProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout, endBefore task.Seconds // endBefore is the time from now; 0 stands for none
		late               bool         // the deadline becomes later
	}{
		"end_before":             {0, 5, true},
		"timeout":                {5, 0, true},
		"both":                   {3, 5, true},
		"far":                    {5000, 6000, false},
		"neither":                {0, 0, false},
		"far timeout, close end": {5000, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				d := define("x")
				if c.timeout > 0 {
					d.Timeout = c.timeout
				}
				now := expect.Result(s.Now(t.Context())).Value(t)
				if c.endBefore > 0 {
					d.EndBefore = now.Add(c.endBefore)
				}
				mustOpen(t, s, d)
				c1 := mustClaim(t, s, 1)[0]
				before := read(t, s, 1).Deadline
				r := redisstate.LeaseRenewal{ID: 1, Round: 0, Claim: c1.ID, Ended: true, Limit: 600}
				for range 2 { // a call may be sent twice
					renewed := expect.Result(s.Renew(t.Context(), 3600, r)).Value(t)
					expect.NoError(t, renewed.Lost[0])
					if c.late {
						before = renewed.Now.Add(600)
					}
				}
				expect.Result(s.Renew(t.Context(), 3600, redisstate.LeaseRenewal{ID: 1, Claim: c1.ID})).OK(t)
				got := read(t, s, 1)
				expect.Equal(t, got.Deadline.String(), before.String(), "the deadline")
				look := task.Time(s.Conn.Redis.ZScore(t.Context(), s.Keys.Due(), "1").Val())
				expect.Compare(t, look, "<=", rules.NextDue(got, now)+1e-3)
				expect.Compare(t, look, ">=", rules.NextDue(got, now)-1e-3)
			})
		})
	}
}

// A claim delays invalid tasks. So later claims find a valid task even behind many invalid tasks.
func TestClaimsPassAnyNumberOfInvalidTasks(t *testing.T) {
	s := newStore(t)
	for i := range 900 {
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(int64(i+1)), "state", "running", "round", 0)
		s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Open), redis.Z{Member: i + 1})
	}
	s.Conn.Redis.Set(t.Context(), s.Keys.TaskID(), 900, 0)
	mustOpen(t, s, define("good"))
	got := ""
	for range 5 {
		got += inputs(mustClaim(t, s, 1))
	}
	expect.Equal(t, got, "good", "claimed")
}

// A claim does not expire a task that is already executed, even if the task's id is still in the list of open tasks.
func TestClaimExpiresOnlyOpenTasks(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Executed)
	s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "end_before", "5", "0:executed", "4")
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Open), redis.Z{Member: id})
	mustClaim(t, s, 1)
	expect.Equal(t, read(t, s, id).State, task.Executed, "the task")
}

// If the clock is set back, each timestamp of a task is still at least as late as the timestamp before it.
func TestTimestampsNeverGoBackwards(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	c := mustClaim(t, s, 1)[0]
	ahead := c.Task.Current().Entered[task.Running].Add(1000) // as if the clock was set back after the claim
	s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), "0:running", ahead.String())
	c.Task.Current().Entered[task.Running] = ahead
	renewed := expect.Result(s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: 1, Claim: c.ID, Begun: true, Limit: 50})).Value(t)
	mustExecute(t, s, c, rules.Result{Exit: "0", Started: renewed.Now, Seconds: 3})
	mustSettle(t, s, 1)
	r := read(t, s, 1).Current()
	expect.Compare(t, r.Started, ">=", ahead)
	expect.Compare(t, r.Entered[task.Executed], ">=", ahead)
	expect.Compare(t, r.Entered[task.Succeeded], ">=", r.Entered[task.Executed])
}

// A claim skips tasks that are put off for the worker, even if many of these tasks are at the head of the queue. Other
// workers can claim these tasks, and so can the worker when their time has come.
func TestClaimSkipsTasksThatArePutOff(t *testing.T) {
	s := newStore(t)
	var definitions []task.Properties
	for range 1000 {
		definitions = append(definitions, define("x"))
	}
	ids := mustOpen(t, s, append(definitions, define("well"), define("also"))...)
	putOff := func(until task.Time) {
		for _, id := range ids[:1000] {
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "not_on", "v\nw\t"+until.String()).Err())
		}
	}
	putOff(clockOf(t, s).Add(600))
	request := redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60}
	claimAll := func() (got []redisstate.Claim) { // on a slow machine, a claim may stop early
		for more := true; more && len(got) < 5; {
			c := expect.Result(s.Claim(t.Context(), request)).Value(t)
			got, more = append(got, c.Claims...), c.More
			if more {
				expect.MustTrue(t, c.Unwanted+len(c.Claims) != 0, "a claim that passed no task returned More")
			}
		}
		return got
	}
	expect.Equal(t, inputs(claimAll()), "well also", "claimed")
	request.Worker = "v w"
	got := inputs(claimAll())
	expect.True(t, strings.HasPrefix(got, "x x x x x"), got)
	putOff(1)
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Key("passed:w:default")).Err()) // it holds for 10 s
	request.Worker = "w"
	got = inputs(claimAll())
	expect.True(t, strings.HasPrefix(got, "x x x x x"), got)
	mustBeSound(t, s)
}

// The reply to a claim of many tasks has a limited size.
func TestClaimIsBoundedInBytes(t *testing.T) {
	s := newStore(t)
	var definitions []task.Properties
	for range 60 {
		definitions = append(definitions, define(strings.Repeat("x", 100_000)))
	}
	mustOpen(t, s, definitions...)
	for claimed := 0; claimed < len(definitions); {
		c, err := s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1000, Lease: 3600})
		n := len(c.Claims)
		expect.NoError(t, err, "claimed", n)
		expect.MustTrue(t, n != 0, "claimed", n, "at once", err)
		expect.MustTrue(t, n <= 42, "claimed", n, "at once", err)
		claimed += len(c.Claims)
	}
}

// The script of a claim uses properties by their places among those that a worker needs.
func TestPlacesOfClaimProperties(t *testing.T) {
	script := string(expect.Result(os.ReadFile("lua/claim.lua")).Value(t))
	named := regexp.MustCompile(`local ([A-Z_, ]+) = ([0-9, ]+) -- indexes of properties`).FindStringSubmatch(script)
	expect.MustLen(t, named, 3)
	places := strings.Split(named[2], ", ")
	for i, name := range strings.Split(named[1], ", ") {
		place := expect.Result(strconv.Atoi(places[i])).Value(t)
		expect.Equal(t, redisstate.ClaimProperties[place-1], strings.ToLower(name))
	}
	words := strings.Join(strings.Fields(strings.ReplaceAll(script, "\n--", " ")), " ")
	list := func(names []string) string {
		return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
	expect.Contains(t, words, "The first properties are "+list(redisstate.ClaimProperties[:13])+".")
	expect.Contains(t, words, "The last properties are "+list(redisstate.ClaimProperties[len(redisstate.ClaimProperties)-6:])+".")
}
