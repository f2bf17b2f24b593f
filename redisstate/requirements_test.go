package redisstate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// QueueCounts counts the due tasks of all priorities, tags and handlers of a queue.
func TestQueueCounts(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustBe := func(when, want string) {
			t.Helper()
			queues, err := s.Counters.QueueCounts(t.Context())
			waiting, err2 := s.Conn.Redis.ZCard(t.Context(), s.Keys.OpenSet(task.WaitingPlace)).Result()
			got := fmt.Sprint(countsText(queues), " ", waiting)
			expect.NoError(t, errors.Join(err, err2), when)
			expect.Equal(t, got, want, when)
		}
		mustBe("without tasks", "[] 0")
		plain := mustOpen(t, s, define("plain"), define("plain"))
		mustBe("plain tasks", "[{default 2}] 0")
		later, handler, limited, waiting := placed("a", 0), placed("b", 0), define("limited"), placed("b", 0)
		later.StartAfter, handler.Source, limited.LimitKey, waiting.After = 4e9, "", "db", &task.Dependencies{Tasks: plain[:1]}
		mustOpen(t, s, placed("a", 3), placed("a", -3, "gpu"), later, handler, limited, waiting, placed("", 7))
		mustBe("queues", "[{a 2} {b 1} {default 4}] 1")
		claimFor(t, s, 5, offerOf("b"))
		mustBe("after a claim that finds nothing", "[{a 2} {b 1} {default 4}] 1")
		s.Conn.Redis.HSet(t.Context(), s.Keys.First(), "x", 1, "queue=z", "y")
		mustBe("odd fields", "[{a 2} {b 1} {default 4}] 1")
		n := expect.Result(s.Counters.OpenWith(t.Context(), class.Requirement{Queue: "a"})).Value(t)
		expect.Equal(t, n, 2, "also a task that is not due yet, but none with a tag")
	})
}

// countsText returns counts without the times of their first tasks.
func countsText(queues []counts.QueueCount) string {
	var all []string
	for _, c := range queues {
		all = append(all, fmt.Sprintf("{%s %d}", c.Queue, c.Open))
	}
	return fmt.Sprint(all)
}

// The first task of a queue is the one that has been due for the longest time, whatever its requirement.
func TestQueueCountsHaveTheFirstTask(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, placed("a", 0), placed("a", 0, "gpu"))
	queues := expect.Result(s.Counters.QueueCounts(t.Context())).Value(t)
	expect.MustLen(t, queues, 1)
	first := read(t, s, ids[0]).Rounds.At(0).Entered[task.Open]
	expect.Compare(t, queues[0].First, "<=", first)
	expect.Compare(t, queues[0].First, ">", first-1)
}

// Redis numbers requirements in the order in which they came, forgets idle ones if there are many, and refuses new ones
// while very many have due tasks.
func TestRequirements(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		later := placed("b", 0)
		later.StartAfter = 4e9
		mustOpen(t, s, placed("a", 3), define("plain"))
		mustOpen(t, s, later)
		all := expect.Result(s.Counters.Requirements(t.Context(), 0)).Value(t)
		expect.MustLen(t, all, 2)
		expect.Equal(t, all[0].Queue+all[1].Queue, "ab")
		expect.Equal(t, expect.Result(s.Counters.Requirements(t.Context(), all[0].Number)).Value(t), all[1:])
		expect.Equal(t, expect.Result(s.Counters.Waiting(t.Context())).Value(t), []string{class.Plain, "queue=a"}, "with due tasks")

		var numbers, first []any
		for i := range 11_000 {
			numbers = append(numbers, float64(10+i), fmt.Sprint("queue=q", i))
		}
		for page := range slices.Chunk(numbers, 2000) {
			must(t, s.Conn.Redis.Do(t.Context(), append([]any{"ZADD", s.Keys.Requirements()}, page...)...).Err())
		}
		mustOpen(t, s, placed("c", 0))
		size := expect.Result(s.Conn.Redis.ZCard(t.Context(), s.Keys.Requirements()).Result()).Value(t)
		expect.Compare(t, size, "<", 11_000, "idle requirements are forgotten")
		expect.Len(t, expect.Result(s.Counters.Requirements(t.Context(), 11_008)).Value(t), 2, "the last number was not used again")

		known := int(s.Conn.Redis.HLen(t.Context(), s.Keys.First()).Val())
		for i := range redisstate.MostRequirements - known - 1 {
			first = append(first, fmt.Sprint("queue=q", i), "x")
		}
		for page := range slices.Chunk(first, 2000) {
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.First(), page...).Err())
		}
		mustOpen(t, s, placed("last", 0))
		before := dump(t, s)
		_, err := s.Open(t.Context(), "m", placed("new", 0))
		expect.Fails(t, err, "the due tasks have 10000 requirements, so there cannot be another one, queue=new; make the queues, tags, "+
			"resources, min_time or handlers of the tasks coarser")
		expect.Equal(t, task.CodeOf(err), task.CodeTooManyRequirements)
		outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Open: []task.Properties{placed("new", 0)}})).Value(t)
		expect.Fails(t, outcomes[0].Err, "coarser")
		queue := "new"
		move, err := rules.Change(read(t, s, 1), task.Changes{Queue: &queue})
		must(t, err)
		outcomes = expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{move}})).Value(t)
		expect.Fails(t, outcomes[0].Err, "coarser")
		expect.Equal(t, changed(t, before, dump(t, s)), "")
		mustOpen(t, s, placed("a", 1), define("plain"))
	})
}

// The tasks of one submitter have at most a quarter of the requirements, also if the tasks are not due yet or wait. Each requirement of a
// submitter counts until its last task is due, and then while it has due tasks.
func TestShareOfRequirements(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		of := func(owner string, tags ...string) task.Properties {
			d := placed("", 0, tags...)
			d.Owner = owner
			return d
		}
		key := s.Keys.RequirementsOf("ann")
		for page := 0; page < 2497; page += 227 {
			args := []any{"ZADD", key}
			for i := range 227 {
				args = append(args, "9e9", fmt.Sprint("tags=", page+i))
			}
			must(t, s.Conn.Redis.Do(t.Context(), args...).Err())
		}
		later, waiting := of("ann", "later"), of("ann", "waiting")
		later.StartAfter = 5e9
		ids := mustOpen(t, s, later, of("ann", "due"), of("ann", "due"))
		waiting.After = &task.Dependencies{Tasks: ids[:1]}
		mustOpen(t, s, waiting)
		expect.Equal(t, s.Conn.Redis.ZScore(t.Context(), key, "tags=later").Val(), 5e9)

		tags := []string{"new"}
		change, err := rules.Change(read(t, s, ids[1]), task.Changes{Tags: &tags})
		must(t, err)
		another, before := of("ann", "new"), dump(t, s)
		waiting.Tags = tags
		refused := func(d task.Properties) {
			t.Helper()
			_, err := s.Open(t.Context(), "m", of("ann", "due"), d)
			expect.Fails(t, err, "the tasks of ann have 2500 requirements, a quarter of those of the namespace, so there cannot be another one, tags=new")
			expect.Equal(t, task.CodeOf(err), task.CodeTooManyRequirements)
		}
		refused(another)
		refused(waiting)
		for _, u := range []redisstate.Unit{{Open: []task.Properties{another}}, {Moves: []rules.Move{change}}} {
			expect.Fails(t, expect.Result(s.Apply(t.Context(), "m", u)).Value(t)[0].Err, "the tasks of ann")
		}
		expect.Equal(t, changed(t, before, dump(t, s)), "")
		mustOpen(t, s, of("ann", "due"), of("bob", "new"), of("", "other"), of("ann"))

		past := redis.ZAddArgs{XX: true, Members: []redis.Z{{Member: "tags=due"}, {Member: "tags=7"}}}
		must(t, s.Conn.Redis.ZAddArgs(t.Context(), key, past).Err())
		mustOpen(t, s, another)
		refused(of("ann", "newer"))
		expect.Equal(t, s.Conn.Redis.ZCard(t.Context(), key).Val(), redisstate.MostOfOne)
		mustMove(t, s, ids[1], rules.Cancel)
		mustMove(t, s, ids[1], func(t *task.Task) (rules.Move, error) { return rules.Reopen(t) })
	})
}

// Any number of groups needs no requirement of its own: those of the TaskStore interface need none, and those with by_group share one.
func TestManyGroups(t *testing.T) {
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	const groups = 10_000
	for _, queue := range []string{class.TaskStore, "q"} {
		openMany(t, s, groups, func(i int, d *task.Properties) {
			d.Queue, d.Source, d.Group, d.ByGroup = queue, "", fmt.Sprint("g", i), true
		})
	}
	all := expect.Result(s.Counters.Requirements(t.Context(), 0)).Value(t)
	expect.MustLen(t, all, 1)
	expect.Equal(t, all[0].Name, "queue=q;handler=p")
	place := class.TaskStoreSet("g4711")
	expect.Equal(t, expect.Result(s.OpenSets.First(t.Context(), place, 0, 9)).Value(t), []int64{4712})
	expect.Equal(t, expect.Result(s.OpenSets.Any(t.Context(), place, clockOf(t, s))).Value(t), 4712)
	o := class.Offer{Queues: []class.QueueShare{{Queue: "q"}, {Queue: class.TaskStore}}, Anything: true, Group: "g4711"}
	expect.Equal(t, claimedIDs(claimFor(t, s, 9, o)), []int64{groups + 4712})
	o.Group = ""
	expect.Equal(t, claimedIDs(claimFor(t, s, 2, o)), []int64{groups + 1, groups + 2})
}

// A requirement that this version cannot read stops no claim, also if it is the newest one, and also while its number
// rises before each claim.
func TestRequirementsThatNobodyReads(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		offer := offerOf("a", "default")
		number := 1000.0
		unreadable := func() {
			number++
			must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Requirements(), redis.Z{Score: number, Member: fmt.Sprint("new=", number)}).Err())
		}
		for range 3 {
			unreadable()
			ids := mustOpen(t, s, define("plain"), placed("a", 0))
			claims := claimFor(t, s, 5, offer)
			expect.Equal(t, slices.Sorted(slices.Values(claimedIDs(claims))), ids)
		}
	})
}

// A worker with a time limit claims no task of a requirement whose min_time another program has made endless, and goes on.
func TestEndlessMinTime(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		offer := offerOf("a")
		offer.Tags = []string{"gpu"}
		mustOpen(t, s, placed("a", 0), placed("a", 0, "gpu"))
		expect.Len(t, claimFor(t, s, 5, offer).Claims, 2) // learns the requirements
		must(t, s.Conn.Redis.HSet(t.Context(), redisstate.ServesKey(s, &offer), "queue=a", "inf;").Err())
		ids := mustOpen(t, s, placed("a", 0), placed("a", 0, "gpu"))
		r := redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60, Offer: &offer, TimeLeft: 100}
		expect.Equal(t, claimedIDs(expect.Result(s.Claim(t.Context(), r)).Value(t)), ids[1:])
	})
}

// A claim of a worker with too little time hides the tasks of a requirement from no other worker, also if it meets many
// requirements that it does not serve.
func TestTimeLimitHidesNoRequirement(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		long := placed("a", 0)
		long.MinTime = 1000
		all := []task.Properties{long}
		for i := range 20 {
			all = append(all, placed("a", 0, fmt.Sprint("x", i)))
		}
		ids := mustOpen(t, s, all...)
		offer := offerOf("a")
		r := redisstate.ClaimParams{Worker: "w", Most: 50, Lease: 60, Offer: &offer, TimeLeft: 100}
		expect.Len(t, expect.Result(s.Claim(t.Context(), r)).Value(t).Claims, 0)
		offer.Tags = []string{"x0"}
		expect.Equal(t, claimedIDs(claimFor(t, s, 50, offer)), ids[:2])
	})
}

// If Redis loses what an offer serves while a worker compares requirements, the worker hides no requirement.
func TestLearningFromAnOldNumber(t *testing.T) {
	s := newStore(t)
	offer := offerOf("a", "b")
	mustOpen(t, s, placed("a", 0))
	expect.Len(t, claimFor(t, s, 5, offer).Claims, 1)
	ids := mustOpen(t, s, placed("a", 0), placed("b", 0))
	must(t, s.Conn.Redis.Del(t.Context(), redisstate.ServesKey(s, &offer)).Err())
	var c redisstate.ClaimResult
	parts := make([]any, redisstate.ClaimReplySeen+1)
	parts[redisstate.ClaimReplySeen] = "1"
	expect.NoError(t, redisstate.LearnRequirements(s, t.Context(), &offer, parts, &c))
	expect.True(t, c.Stale, "the claim is not repeated")
	expect.Len(t, s.Conn.Redis.HGetAll(t.Context(), redisstate.ServesKey(s, &offer)).Val(), 0)
	expect.Equal(t, slices.Sorted(slices.Values(claimedIDs(claimFor(t, s, 5, offer)))), ids)
}

// Two processes repeat a claim, and both find a requirement that they do not know. Both get the task, although one of them
// claims it while the other compares requirements.
func TestRepeatedClaimMeetsANewRequirement(t *testing.T) {
	s := newStore(t)
	other := connect(t, s.Conn.Addr, s.Keys.Namespace())
	mustOpen(t, s, placed("a", 0))
	offer := offerOf("a")
	claim := func(by *redisstate.Store) []redisstate.Claim {
		call := expect.Result(by.ClaimCall(t.Context(), "session", 1)).Value(t)
		r := redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60, Call: call, IDs: "c", Offer: &offer}
		return expect.Result(by.Claim(t.Context(), r)).Value(t).Claims
	}
	var first []redisstate.Claim
	compares := func(c redis.Cmder) bool { return len(c.Args()) > 3 && c.Args()[3] == redisstate.ServesKey(s, &offer) }
	other.Conn.Redis.AddHook(once(compares, func() { first = claim(s) }))
	again := claim(other)
	expect.MustLen(t, first, 1)
	expect.MustLen(t, again, 1)
	expect.Equal(t, again[0].ID, first[0].ID)
}
