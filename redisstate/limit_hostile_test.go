package redisstate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// A handClock is a Redis whose clock the test moves.
type handClock struct {
	*embedded.Redis
	now time.Time
}

func (c *handClock) pass(seconds float64) {
	c.now = c.now.Add(task.Seconds(seconds).Std())
	c.SetTime(c.now)
}

func withHandClock(t *testing.T) (*handClock, *redisstate.Store) {
	r := expect.Result(embedded.Start("127.0.0.1:0")).Value(t)
	t.Cleanup(r.Close)
	c := &handClock{Redis: r, now: time.Now()}
	c.pass(0)
	return c, connect(t, r.Addr(), redistest.Namespace(t))
}

// No time span of one second has more than ten starts, whatever the times of the claims are. The starts come as fast as the
// rate allows. After the clock was set back, they go on after one period.
func TestRateIsExact(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	seed := seeded(t)
	random := rand.New(rand.NewPCG(seed, 0))
	mustLimit(t, s, "api", task.Limit{Starts: 10, Per: task.Seconds(1).Std()})
	var all []task.Properties
	for range 200 {
		all = append(all, limitedBy("api"))
	}
	mustOpen(t, s, all...)
	clock.pass(7200) // the tasks stay due when the clock is set back
	var starts []task.Time
	begun, setBack := clock.now, 0
	for steps := 0; len(starts)-setBack < 100; steps++ {
		expect.MustTrue(t, steps <= 1000, "only", len(starts), "starts in", clock.now.Sub(begun))
		clock.pass(random.Float64() * 0.15)
		if steps%2 == 0 { // the server keeps to the rate, too, so every other task comes past the server
			d := limitedBy("api")
			d.Priority, d.StartAfter = steps, 1
			mustOpen(t, s, d)
		} else {
			returnWaiting(t, s)
		}
		for _, c := range mustClaim(t, s, 1+random.IntN(20)) {
			starts = append(starts, c.Task.Current().Entered[task.Running])
			if random.IntN(2) == 0 {
				mustExecute(t, s, c, rules.Result{Exit: "0"})
			}
		}
		if setBack == 0 && len(starts) >= 50 {
			took := clock.now.Sub(begun).Seconds()
			expect.True(t, took <= 8, "50 starts took", took, "s")
			clock.pass(-3600)
			begun, setBack = clock.now, len(starts)
		}
	}
	if took := clock.now.Sub(begun).Seconds(); took > 24 { // one period until the starts go on, and up to 10 s until the next check
		t.Errorf("100 starts took %v s after the clock was set back", took)
	}
	for i := range len(starts) - 10 {
		if i+10 < setBack || i >= setBack {
			span := starts[i+10].Sub(starts[i])
			expect.MustTrue(t, span >= 1-1e-6, "eleven starts in", span, "s")
		}
	}
}

// If the clock is set back by less than a minute, the tasks of a rate-limited key wait for at most 12 s more: until the next check,
// and for one period of the rate.
func TestRateAfterTheClockWasSetBackALittle(t *testing.T) {
	t.Parallel()
	for _, back := range []float64{2, 15, 30, 59} {
		clock, s := withHandClock(t)
		mustLimit(t, s, "api", task.Limit{Starts: 1, Per: task.Seconds(1).Std()})
		mustOpen(t, s, limitedBy("api"), limitedBy("api"))
		clock.pass(100) // the tasks stay due when the clock is set back
		expect.MustLen(t, claimAll(t, s, 9), 1, "claimed")
		returnWaiting(t, s)
		clock.pass(-back)
		for waited := 0.0; len(claimAll(t, s, 9)) == 0; waited += 0.5 {
			if waited > 13 {
				t.Errorf("%v s back: no task started", back)
				break
			}
			clock.pass(0.5)
			returnWaiting(t, s)
		}
	}
}

// A rate and a number hold together. A rate of one start does not let two tasks of one claim start.
func TestRateAndNumber(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	mustLimit(t, s, "db", task.Limit{AtMost: 2, Starts: 1, Per: task.Seconds(10).Std()})
	ids := mustOpen(t, s, limitedBy("db"), limitedBy("db"), limitedBy("db"), limitedBy("db"))
	for i, want := range []int{1, 1, 0} {
		clock.pass(0.5)
		expect.Len(t, claimAll(t, s, 10), want, "claim", i)
		u := useOf(t, s, "db")
		expect.Equal(t, u.Running, min(i+1, 2))
		expect.Equal(t, u.Free, i/2)
		clock.pass(10)
		returnWaiting(t, s)
	}
	mustMove(t, s, ids[0], rules.Cancel)
	expect.Equal(t, returnWaiting(t, s), 1, "the free place was not used")
	expect.Len(t, claimAll(t, s, 10), 1, "the free place was not used")
	mustLimit(t, s, "db", running(9)) // without the rate
	expect.Equal(t, s.Conn.Redis.Exists(t.Context(), s.Keys.Starts("db")).Val(), 0, "the starts are still stored")
	expect.Equal(t, returnWaiting(t, s), 1, "the new limit has no effect")
	expect.Len(t, claimAll(t, s, 10), 1, "the new limit has no effect")
}

// Many waiting tasks of a queue without workers, before and among those of another queue, delay these by a short time.
func TestUnservedQueueHoldsNobody(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	mustLimit(t, s, "db", running(0))
	const left, served = 160, 40
	for i := range left {
		d := limitedBy("db")
		d.Queue, d.Priority = "left", i%3-1
		all := []task.Properties{d}
		if i >= left-served {
			d := limitedBy("db")
			d.Priority = i%2 - 1
			all = append(all, d)
		}
		mustOpen(t, s, all...)
	}
	clock.pass(1)
	for c := (redisstate.ClaimResult{More: true}); c.More; {
		c = claimFor(t, s, 10, offerOf("left", "default"))
	}
	mustLimit(t, s, "db", running(4))
	done, begun := 0, clock.now
	for done < served {
		returnWaiting(t, s)
		claims := mustClaim(t, s, 10)
		for _, c := range claims {
			mustExecute(t, s, c, rules.Result{Exit: "0"})
		}
		done += len(claims)
		expect.MustTrue(t, len(claims) <= 4, len(claims), "were claimed")
		clock.pass(0.1)
		waited := clock.now.Sub(begun).Seconds()
		expect.MustTrue(t, waited <= 150, "only", done, "were claimed in", waited, "s")
	}
	mustBeSound(t, s)
	for c := (redisstate.ClaimResult{More: true}); c.More || len(c.Claims) > 0; { // the queue has workers again
		c = claimFor(t, s, 1, offerOf("left"))
	}
	u := useOf(t, s, "db")
	expect.Equal(t, u.Running, 4)
	mustBeSound(t, s)
}

// The tasks behind tasks that have no place there return.
func TestHostileWaitingTasks(t *testing.T) {
	s := newStore(t)
	mustLimit(t, s, "db", running(0))
	const sound = 5
	others := []string{"limit=other\ndefault", "limit=db", "limit=db\npriority=5", "default"}
	var all []task.Properties
	for range sound + len(others) {
		all = append(all, limitedBy("db"))
	}
	ids := mustOpen(t, s, all...)
	claimAll(t, s, 10)
	for i, place := range others {
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[i]), "place", place)
	}
	n := 0
	for range ids { // at most one at a time, so each task at the head is met
		mustLimit(t, s, "db", running(1+n))
		n += returnWaiting(t, s)
	}
	expect.Equal(t, n, sound, "tasks")
	expect.Len(t, heldDue(t, s), 0)
}

// A new rate with a longer time span counts the starts before it.
func TestLongerRate(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		rate := func(per task.Seconds) task.Limit { return task.Limit{Starts: 1, Per: per.Std()} }
		kept := func() float64 { return s.Conn.Redis.TTL(t.Context(), s.Keys.Starts("db")).Val().Seconds() }
		mustLimit(t, s, "db", rate(0.001))
		mustOpen(t, s, limitedBy("db"), limitedBy("db"))
		got := claimAll(t, s, 10)
		expect.MustLen(t, got, 1)
		expect.MustTrue(t, kept() <= 61, "claimed", got, "and the starts stay for", kept(), "s")
		mustLimit(t, s, "db", rate(1e6))
		expect.True(t, kept() >= 1e6, "the starts stay for", kept(), "s")
		returnWaiting(t, s)
		expect.Len(t, claimAll(t, s, 10), 0, "claimed")
	})
}

// Waiting tasks come back by priority, then by age. A new task with a higher priority goes before them.
func TestWaitingTasksKeepTheirOrder(t *testing.T) {
	s := newStore(t)
	mustLimit(t, s, "db", running(1))
	prioritized := func(priority int) task.Properties { d := limitedBy("db"); d.Priority = priority; return d }
	ids := mustOpen(t, s, prioritized(9), prioritized(0), prioritized(5), prioritized(5), prioritized(-5), prioritized(0))
	next := func() redisstate.Claim {
		t.Helper()
		returnWaiting(t, s)
		claims := mustClaim(t, s, 10)
		expect.MustLen(t, claims, 1, "were claimed")
		return claims[0]
	}
	var got []int64
	for i := range 8 {
		if i == 2 {
			ids = append(ids, mustOpen(t, s, prioritized(7))...)
		}
		if i == 3 { // a waiting task gets another priority, and returns to its queue
			mustChange(t, s, ids[4], task.Changes{Priority: new(3)})
			expect.Equal(t, read(t, s, ids[4]).PlacedIn, "priority=3", "the changed task is in")
			ids = append(ids, mustOpen(t, s, prioritized(0))...)
		}
		mustBeSound(t, s)
		c := next()
		got = append(got, c.Task.ID)
		mustExecute(t, s, c, rules.Result{Exit: "0"})
	}
	want := []int64{ids[0], ids[2], ids[6], ids[3], ids[4], ids[1], ids[5], ids[7]}
	expect.Equal(t, got, want, "claimed")
	for key := range dump(t, s) {
		expect.True(t, !strings.HasPrefix(key, "limited:"), "the key", key, "is left")
		expect.True(t, !strings.HasPrefix(key, "returned:"), "the key", key, "is left")
		expect.NotEqual(t, key, "held")
		expect.True(t, !strings.HasPrefix(key, "held:"), "the key", key, "is left")
	}
}

// If a task has to wait only because others wait before it, its key becomes due at once.
func TestTaskBehindOthersIsChecked(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	mustLimit(t, s, "db", running(0))
	mustOpen(t, s, limitedBy("db"))
	clock.pass(1)
	claimAll(t, s, 10)
	mustLimit(t, s, "db", running(2))
	clock.pass(1)
	mustOpen(t, s, limitedBy("db"))
	clock.pass(1)
	if got := claimAll(t, s, 10); len(got) > 0 { // meanwhile, a claim makes the second task wait behind the first one
		t.Fatalf("claimed %d", got)
	}
	expect.Equal(t, returnWaiting(t, s), 2, "tasks returned at once")
	expect.Len(t, claimAll(t, s, 10), 2, "claimed")
}

// A waiting task can be changed, cancelled and retried, and expires.
func TestWaitingTaskByHand(t *testing.T) {
	s := newStore(t)
	mustLimit(t, s, "db", running(0))
	expiring := limitedBy("db")
	expiring.EndBefore = 3e9
	ids := mustOpen(t, s, limitedBy("db"), limitedBy("db"), expiring, limitedBy("db"), limitedBy("db"))
	expect.MustLen(t, claimAll(t, s, 10), 0, "claimed")
	change := func(id int64, c task.Changes, place string) {
		t.Helper()
		mustChange(t, s, id, c)
		expect.Equal(t, read(t, s, id).PlacedIn, place, "the place")
		mustBeSound(t, s)
	}
	change(ids[0], task.Changes{LimitKey: new("")}, "")
	change(ids[1], task.Changes{Queue: new("a")}, "queue=a")
	mustMove(t, s, ids[2], rules.Expire)
	mustMove(t, s, ids[3], rules.Cancel)
	mustMove(t, s, ids[3], rules.Reopen)
	x := read(t, s, ids[3])
	expect.True(t, !x.WaitsForLimit(), "the retried task is in", x.PlacedIn)
	change(ids[4], task.Changes{StartAfter: new(task.Time(9e9).Std())}, "default")
	expect.Equal(t, claimAll(t, s, 10), ids[:1], "claimed")
	must(t, s.Limits.RemoveLimit(t.Context(), "db"))
	if n := returnWaiting(t, s); n != 1 { // the fourth
		t.Errorf("%d tasks returned", n)
	}
	expect.Equal(t, read(t, s, ids[1]).PlacedIn, "queue=a", "the place")
	mustBeSound(t, s)
}

// The audit finds and repairs what a failover or another program has lost.
func TestAuditRepairsLimits(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustLimit(t, s, "db", running(1))
		ids := mustOpen(t, s, limitedBy("db"), limitedBy("db"), limitedBy("db"))
		claimAll(t, s, 10)
		for _, spoil := range []func(){
			func() { s.Conn.Redis.Del(t.Context(), s.Keys.Limited("db")) },
			func() { s.Conn.Redis.Del(t.Context(), s.Keys.Held()) },
			func() { s.Conn.Redis.Del(t.Context(), s.Keys.OpenSet("limit=db")) },
			func() { s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[1]), "place", "limit=other") },
		} {
			spoil()
			findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
			expect.True(t, len(findings) != 0, "nothing was found")
			expect.Result(audit.Of(s).Repair(t.Context(), "test", findings)).OK(t)
			mustBeSound(t, s)
			u := useOf(t, s, "db")
			expect.Equal(t, u.Running, 1)
			expect.Equal(t, u.Waiting, 2)
		}
	})
}

// If a key of a limit has a wrong type, no task beyond the limit starts, and other tasks go on or the call says so.
func TestLimitKeysOfWrongTypes(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"limits", "held", "limited:db", "returned:limit=db", "starts:db", "held:limit=db"} {
		t.Run(key, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				mustLimit(t, s, "db", task.Limit{AtMost: 1, Starts: 5, Per: task.Seconds(1).Std()})
				mustOpen(t, s, limitedBy("db"), limitedBy("db"), limitedBy("db"))
				first := mustClaim(t, s, 10)
				expect.MustLen(t, first, 1, "were claimed")
				s.Conn.Redis.Del(t.Context(), s.Keys.Key(key))
				s.Conn.Redis.Set(t.Context(), s.Keys.Key(key), "x", 0)
				mustOpen(t, s, limitedBy("db"), define("plain"))
				before := dump(t, s)
				c, err := s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 10, Lease: 60})
				for _, claim := range c.Claims {
					expect.Equal(t, claim.Task.LimitKey, "", "task", claim.Task.ID, "was claimed beyond the limit")
				}
				diff := changed(t, before, dump(t, s))
				if err != nil {
					expect.Equal(t, diff, "")
				}
				if err == nil {
					expect.Len(t, c.Claims, 1)
				}
				mustExecute(t, s, first[0], rules.Result{Exit: "0"})
				s.Limits.ReturnHeld(t.Context())
				s.Conn.Redis.Del(t.Context(), s.Keys.Key(key))
				findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
				expect.Result(audit.Of(s).Repair(t.Context(), "test", findings)).OK(t)
				mustBeSound(t, s)
			})
		})
	}
}

// If the place of one task has a wrong type, this task keeps waiting, and the tasks of other keys return in the same call.
func TestPlaceOfAWrongTypeHoldsOnlyItsTasks(t *testing.T) {
	s := newStore(t)
	var all []task.Properties
	for _, name := range []string{"a", "b"} {
		mustLimit(t, s, name, running(0))
		d := placed(name, 0)
		d.LimitKey = name
		all = append(all, d)
	}
	ids := mustOpen(t, s, all...)
	claimFor(t, s, 9, offerOf("a", "b"))
	mustLimit(t, s, "a", running(1))
	mustLimit(t, s, "b", running(1))
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.OpenSet("queue=a"), "x", 0).Err())
	expect.Equal(t, returnWaiting(t, s), 1)
	expect.Equal(t, claimedIDs(claimFor(t, s, 9, offerOf("b"))), ids[1:], "claimed")
	expect.Len(t, heldDue(t, s), 0)
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.OpenSet("queue=a")).Err())
	must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Held(), redis.Z{Score: 1, Member: "limit=a"}).Err())
	expect.Equal(t, returnWaiting(t, s), 1, "tasks returned at last")
	mustBeSound(t, s)
}

// If another program has written an invalid limit, no waiting task returns before the limit is set again. If the limit
// cannot be read at all, no task is claimed either.
func TestInvalidLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for limit, most := range map[string]int{
			"at_most=1 rate=x/y": 1, "at_most=1 rate=5/inf": 1, "at_most=1 rate=5/1e400": 1,
			"at_most=1 rate=0/1": 1, "at_most=1 at_most=x": 1,
			"at_most=-1": 0, "odd": 0, "at_most=1e9": 0, "rate=10": 0, "rate=x/1": 0, "at_most=2 rate=1/": 0,
		} {
			mustOpen(t, s, limitedBy(limit), limitedBy(limit))
			s.Conn.Redis.HSet(t.Context(), s.Keys.Limits(), limit, limit)
			expect.Compare(t, len(claimAll(t, s, 10)), "<=", most, limit)
			expect.Equal(t, returnWaiting(t, s), 0, limit)
			expect.Compare(t, len(claimAll(t, s, 10)), "<=", most, limit)
			mustLimit(t, s, limit, running(2))
			returnWaiting(t, s)
			claimAll(t, s, 10)
			expect.Equal(t, useOf(t, s, limit).Running, 2, "limit", limit, "set again")
		}
		mustBeSound(t, s)
	})
}

// A million tasks of a key at the head of the queue cost each claim a bounded time: here, 20,000 tasks. Nearly all of them are met once.
func TestManyTasksOfOneKey(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	const tasks = 20_000
	mustLimit(t, s, "db", running(2))
	all := make([]task.Properties, tasks)
	for i := range all {
		all[i] = limitedBy("db")
	}
	mustOpen(t, s, all...)
	plain := mustOpen(t, s, define("plain"))[0]
	read, calls, met := 0, 0, false
	var claims []redisstate.Claim
	for !met {
		before := commandCalls(t, s, "hmget")
		calls++
		c := claimFor(t, s, 10, class.Offer{Programs: true})
		for _, claim := range c.Claims {
			met = met || claim.Task.ID == plain
			claims = append(claims, claim)
		}
		n := commandCalls(t, s, "hmget") - before
		read += n
		expect.MustTrue(t, n <= 1000, "a claim read", n, "tasks")
	}
	expect.Compare(t, read, ">", tasks)
	expect.Compare(t, read, "<=", tasks+tasks/100+3*calls, "each claim also reads which requirements come first")
	expect.Len(t, claims, 3, read)
	returnWaiting(t, s)
	commands := func() int {
		return commandCalls(t, s, "hmget") + commandCalls(t, s, "zrange") + commandCalls(t, s, "hset") + commandCalls(t, s, "zadd") + commandCalls(t, s, "zrem")
	}
	before := commands()
	mustExecute(t, s, claims[0], rules.Result{Exit: "0"})
	expect.Equal(t, returnWaiting(t, s), 1, "tasks")
	expect.Len(t, claimAll(t, s, 10), 1, "claimed")
	expect.Compare(t, commands()-before, "<=", 60)
	got := useOf(t, s, "db")
	expect.Equal(t, got.Waiting, tasks-3)
	expect.Equal(t, got.Running, 2)
}

// More keys with waiting tasks than a call checks are checked in several calls. A leap of the clock does not stop the checks.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	clock, s := withHandClock(t)
	const atOnce, keys = 50, 100
	var all []task.Properties
	for i := range keys {
		key := fmt.Sprint("k", i)
		mustLimit(t, s, key, running(1))
		all = append(all, limitedBy(key), limitedBy(key))
	}
	mustOpen(t, s, all...)
	clock.pass(1)
	claims := mustClaim(t, s, 1000)
	expect.MustLen(t, claims, keys, "were claimed")
	for range keys/atOnce + 1 {
		returnWaiting(t, s)
	}
	expect.Len(t, heldDue(t, s), 0)
	clock.pass(-3600)
	for range keys / atOnce {
		expect.MustTrue(t, returnWaiting(t, s) <= 0)
	}
	last := s.Conn.Redis.ZRevRangeWithScores(t.Context(), s.Keys.Held(), 0, 0).Val()[0]
	expect.True(t, last.Score <= float64(clock.now.Unix()+60), "the last check is at", last.Score)
	for _, c := range claims {
		mustExecute(t, s, c, rules.Result{Exit: "0"})
	}
	n := 0
	for range keys/atOnce + 1 {
		n += returnWaiting(t, s)
	}
	expect.Equal(t, n, keys)
	expect.Equal(t, s.Conn.Redis.ZCard(t.Context(), s.Keys.Held()).Val(), 0, n, "tasks returned")
}

// If workers claim a returned task late, the server checks the key again when the rate allows the next start.
func TestLateStartOfARate(t *testing.T) {
	s := newStore(t)
	d := limitedBy("k")
	mustOpen(t, s, d, d, d)
	mustLimit(t, s, "k", task.Limit{Starts: 1, Per: task.Seconds(100).Std()})
	claim := func(want int64) {
		t.Helper()
		expect.MustEqual(t, claimedIDs(claimFor(t, s, 9, offerOf(class.DefaultQueue))), []int64{want}, "claimed", want)
	}
	claim(1)
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Key("starts:k")).Err()) // as if 100 s had passed
	returnWaiting(t, s)
	must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Held(), redis.Z{Score: 9e9, Member: "limit=k"}).Err())
	claim(2)
	due := task.Time(s.Conn.Redis.ZScore(t.Context(), s.Keys.Held(), "limit=k").Val())
	expect.True(t, due <= clockOf(t, s).Add(100), "the server checks the key at", due)
}

// Claims and the server read a limit that another program has written in the same way. So no task goes to and fro.
func TestForeignLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"", "at_most=+1", "rate=+10/1", "rate=10/1e0", "rate=10/+1", "at_most=2000000", "rate=5/0", "at_most=2  x=7"} {
		t.Run(limit, func(t *testing.T) {
			s := newStore(t)
			d := limitedBy("k")
			mustOpen(t, s, d, d, d)
			mustLimit(t, s, "k", task.Limit{AtMost: 0})
			claimFor(t, s, 9, offerOf(class.DefaultQueue)) // now the tasks wait
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Limits(), "k", limit).Err())
			must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Held(), redis.Z{Score: 1, Member: "limit=k"}).Err())
			returned := returnWaiting(t, s)
			expect.Len(t, claimFor(t, s, 9, offerOf(class.DefaultQueue)).Claims, returned, "tasks … were claimed")
			must(t, s.Limits.RemoveLimit(t.Context(), "k"))
			expect.True(t, !s.Conn.Redis.HExists(t.Context(), s.Keys.Limits(), "k").Val(), "the limit is still there")
		})
	}
}
