package redisstate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// placed returns a definition with a queue, a priority and tags. The queue of the result may be "".
func placed(queue string, priority int, tags ...string) task.Properties {
	d := define("x")
	d.Queue, d.Priority, d.Tags = queue, priority, tags
	return d
}

// claimFor makes one claim for a worker with an offer.
func claimFor(t *testing.T, s *redisstate.Store, most int, offer class.Offer) redisstate.ClaimResult {
	t.Helper()
	return expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: most, Lease: 3600, Offer: &offer})).Value(t)
}

func claimedIDs(c redisstate.ClaimResult) (ids []int64) {
	for _, claim := range c.Claims {
		ids = append(ids, claim.Task.ID)
	}
	return ids
}

func offerOf(queues ...string) class.Offer {
	o := class.Offer{Programs: true}
	for _, q := range queues {
		o.Queues = append(o.Queues, class.QueueShare{Queue: q})
	}
	return o
}

// The model is a sorted slice: a claim takes tasks by queue, then by priority, then by age. Claims, reopened tasks,
// expired tasks and changes of the priority keep to it.
func TestClaimsAgreeWithTheModelOfQueues(t *testing.T) {
	t.Parallel()
	few := [][]string{nil, {"gpu"}, {"ssd"}, {"gpu", "ssd"}}
	var many [][]string
	for i := range 60 {
		many = append(many, []string{fmt.Sprint("t", i)})
	}
	someOf := func(random *rand.Rand) (tags []string) {
		for _, tag := range many {
			if random.IntN(4) > 0 {
				tags = append(tags, tag...)
			}
		}
		return tags
	}
	for name, c := range map[string]struct {
		tags    [][]string
		offered func(random *rand.Rand) []string
	}{
		"few requirements":  {few, func(random *rand.Rand) []string { return few[random.IntN(4)] }},
		"many requirements": {append(many, nil), someOf},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) { claimsAgreeWithModel(t, s, c.tags, c.offered) })
		})
	}
}

func claimsAgreeWithModel(t *testing.T, s *redisstate.Store, tagSets [][]string, offered func(random *rand.Rand) []string) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	type modelTask struct {
		id int64
		d  task.Properties
	}
	var model []modelTask // in the order in which the tasks became open
	queueNames := []string{"", "a", "b"}
	for range operations(t, 160, 4_000) {
		switch random.IntN(4) {
		case 0, 1:
			var all []task.Properties
			for range 1 + random.IntN(6) {
				all = append(all, placed(queueNames[random.IntN(3)], random.IntN(5)-2, tagSets[random.IntN(len(tagSets))]...))
				if random.IntN(5) == 0 { // no claim of the test gets this task
					all[len(all)-1].StartAfter = 9e9
				}
			}
			for i, id := range mustOpen(t, s, all...) {
				if all[i].StartAfter == 0 {
					model = append(model, modelTask{id, all[i]})
				}
			}
		case 2:
			if len(model) == 0 {
				continue
			}
			i, priority := random.IntN(len(model)), random.IntN(5)-2
			if m, err := rules.Change(read(t, s, model[i].id), task.Changes{Priority: &priority}); err == nil {
				mustApply(t, s, m, nil)
				model[i].d.Priority = priority
			}
		default:
			offer := offerOf([][]string{{"a", "default"}, {"b"}, {"default"}, {"b", "a"}}[random.IntN(4)]...)
			offer.Tags = offered(random)
			var want []int64
			most := 1 + random.IntN(8)
			for _, q := range offer.Queues {
				var of []modelTask
				for _, m := range model {
					if p := m.d.Requirement(); p.Queue == q.Queue && class.Serves(&offer, p) {
						of = append(of, m)
					}
				}
				slices.SortStableFunc(of, func(a, b modelTask) int { return b.d.Priority - a.d.Priority })
				for _, m := range of {
					want = append(want, m.id)
				}
			}
			want = want[:min(most, len(want))]
			c := claimFor(t, s, most, offer)
			if c.More { // on a slow machine, the claim may have stopped early
				want = want[:min(len(want), len(c.Claims))]
			}
			expect.MustEqual(t, claimedIDs(c), want, "a worker", offer)
			for _, claim := range c.Claims {
				i := slices.IndexFunc(model, func(m modelTask) bool { return m.id == claim.Task.ID })
				again := model[i]
				model = slices.Delete(model, i, i+1)
				if random.IntN(3) == 0 {
					m, err := rules.Release(claim.Task, "")
					mustApply(t, s, m, err)
					model = append(model, again)
				}
			}
		}
	}
	mustBeSound(t, s)
}

// A claim of a few tasks reads as many requirements as it has tasks. The requirements that it has met, and the next ones, then have
// wake tokens.
func TestClaimFromManyRequirements(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	const requirements, each = 200, 10
	offer := offerOf("q")
	var all []task.Properties
	for i := range requirements * each {
		d := placed("q", 0, fmt.Sprint("t", i%requirements))
		if i < requirements {
			offer.Tags = append(offer.Tags, d.Tags...)
		}
		all = append(all, d)
	}
	mustOpen(t, s, all...)
	claimFor(t, s, 1, offer) // loads the script
	names := expect.Result(s.Counters.Waiting(t.Context())).Value(t)
	for _, p := range names {
		s.Conn.Redis.Del(t.Context(), s.Keys.WakeFor(p))
	}
	commands := func() (n int) {
		for _, name := range []string{"zrange", "zrevrange", "zrangebyscore", "zrangebylex", "hget", "hset", "zrem", "zadd", "exists", "llen", "lpush", "expire"} {
			n += commandCalls(t, s, name)
		}
		return n
	}
	for i, want := range []int{350, 250} { // the first claim also puts in tokens
		before := commands()
		expect.MustLen(t, claimFor(t, s, 15, offer).Claims, 15, "tasks were claimed")
		expect.Compare(t, commands()-before, "<=", want, "claim", i)
	}
	tokens := 0
	for _, p := range names {
		tokens += int(s.Conn.Redis.Exists(t.Context(), s.Keys.WakeFor(p)).Val())
	}
	expect.True(t, tokens >= 16, tokens, "requirements have tokens")
}

// A task that becomes due is claimed by its priority, and then the requirement leaves no keys behind.
func TestEmptyPlacesVanish(t *testing.T) {
	s := newStore(t)
	soon := placed("a", 7, "gpu")
	soon.StartAfter = clockOf(t, s).Add(0.05)
	ids := mustOpen(t, s, placed("a", 1, "gpu"), soon)
	offer := offerOf("a")
	offer.Tags = []string{"gpu"}
	order := claimedIDs(claimFor(t, s, 1, offer))
	wasDue := clockOf(t, s) >= soon.StartAfter // on a slow machine, the higher priority may be due before the first claim
	for len(order) < 2 {
		order = append(order, claimedIDs(claimFor(t, s, 1, offer))...)
	}
	if !slices.Equal(order, ids) {
		expect.True(t, wasDue, "the tasks came in the order", order)
	}
	for name := range dump(t, s) {
		expect.True(t, !strings.HasPrefix(name, "open"), "the key", name, "is left")
		expect.True(t, !strings.HasPrefix(name, "first"), "the key", name, "is left")
		expect.True(t, !strings.HasPrefix(name, "later"), "the key", name, "is left")
	}
	mustBeSound(t, s)
}

// A worker learns of a new requirement by its next claim, and the Waker then waits for the requirement's tokens.
func TestWakeOfRequirement(t *testing.T) {
	s := newStore(t)
	offer := offerOf("a")
	w := s.WakeWorker(&offer, nil)
	defer w.Close()
	mustOpen(t, s, placed("a", 3))
	expect.MustLen(t, claimFor(t, s, 5, offer).Claims, 1, "tasks")
	for w.Wait(t.Context(), 1) { // the token of the first task may be left
	}
	mustOpen(t, s, placed("a", -3))
	expect.True(t, w.Wait(t.Context(), 60e9), "no token came for the requirement")
}

// The first task of a new requirement wakes workers of any kind, because none of them waits for its tokens yet.
func TestWakeOfANewRequirement(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		other := offerOf("b")
		w := s.WakeWorker(&other, nil)
		defer w.Close()
		woken := make(chan bool)
		go func() { woken <- w.Wait(t.Context(), ever) }()
		mustOpen(t, s, placed("a", 3))
		expect.True(t, <-woken, "a new requirement woke no waker")
		mustOpen(t, s, placed("a", 4))
		expect.Equal(t, expect.Result(s.Conn.Redis.LLen(t.Context(), s.Keys.WakeRequirements()).Result()).Value(t), 7)
	})
}

// A worker finds a task behind tasks of many priorities that are put off for it.
func TestPositionsPassPriorities(t *testing.T) {
	s := newStore(t)
	const passed = 3000
	var all []task.Properties
	for i := range passed {
		all = append(all, placed("a", 5000-i))
	}
	all = append(all, placed("a", 1))
	ids := mustOpen(t, s, all...)
	putOff(t, s, "w", ids[:passed]...)
	offer := offerOf("a")
	for range 500 { // a slow Redis looks at few tasks per claim
		c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 60, Offer: &offer})).Value(t)
		if len(c.Claims) > 0 {
			expect.Equal(t, claimedIDs(c), ids[passed:])
			return
		}
	}
	t.Error("no claim found the task")
}

// The audit notices each damage to a place, and repairs it.
func TestPlacesAreRepaired(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, s *redisstate.Store, id string){
		"missing in its place": func(t *testing.T, s *redisstate.Store, id string) {
			s.Conn.Redis.Del(t.Context(), s.Keys.OpenSet("queue=a"))
		},
		"missing in the list": func(t *testing.T, s *redisstate.Store, id string) {
			s.Conn.Redis.ZRem(t.Context(), s.Keys.List(rules.Placed), id)
		},
		"no first members": func(t *testing.T, s *redisstate.Store, _ string) { s.Conn.Redis.Del(t.Context(), s.Keys.First()) },
		"no heads":         func(t *testing.T, s *redisstate.Store, _ string) { s.Conn.Redis.Del(t.Context(), s.Keys.Heads("a")) },
		"another head": func(t *testing.T, s *redisstate.Store, _ string) {
			member := s.Conn.Redis.HGet(t.Context(), s.Keys.First(), "queue=a").Val()
			later := strings.Replace(member, " ", " 9", 1)[:28] + member[28:]
			s.Conn.Redis.ZRem(t.Context(), s.Keys.Heads("a"), member)
			s.Conn.Redis.ZAdd(t.Context(), s.Keys.Heads("a"), redis.Z{Member: later})
			s.Conn.Redis.HSet(t.Context(), s.Keys.First(), "queue=a", later)
		},
		"no member in the hash": func(t *testing.T, s *redisstate.Store, _ string) {
			s.Conn.Redis.HSet(t.Context(), s.Keys.First(), "queue=a", "")
		},
		"another place": func(t *testing.T, s *redisstate.Store, id string) {
			s.Conn.Redis.HSet(t.Context(), s.Keys.TaskPrefix()+id, "place", "queue=b")
		},
		"in the list of the others": func(t *testing.T, s *redisstate.Store, id string) {
			s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Open), redis.Z{Score: 1, Member: id})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			id := mustOpen(t, s, placed("a", 5))[0]
			damage(t, s, fmt.Sprint(id))
			findings := expect.Result(audit.Of(s).Check(t.Context())).Value(t)
			expect.MustLen(t, findings, 1)
			expect.MustEqual(t, expect.Result(audit.Of(s).Repair(t.Context(), "audit", findings)).Value(t), 1, findings)
			mustBeSound(t, s)
			expect.Equal(t, claimedIDs(claimFor(t, s, 2, offerOf("default", "a"))), []int64{id}, "claimed")
		})
	}
}

// Heads whose tasks are gone, and members that another program has written, delay no task.
func TestStaleHeads(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ids := mustOpen(t, s, placed("a", 5), placed("a", 0, "t"))
		var stale []redis.Z
		for i := range 600 {
			stale = append(stale, redis.Z{Member: fmt.Sprintf("%010d 1700000000.000000 queue=a;tags=t%d", i, i)})
		}
		stale = append(stale, redis.Z{Member: ""}, redis.Z{Member: "x"}, redis.Z{Member: "0000000001 1700000000.000000 queue=b"},
			redis.Z{Member: "0000000001 1700000000.000000 queue=a"}, redis.Z{Member: "nan        nan               queue=a;tags=t"})
		must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Heads("a"), stale...).Err())
		offer := offerOf("a")
		offer.Tags = []string{"t"}
		for i := range 600 {
			offer.Tags = append(offer.Tags, fmt.Sprint("t", i))
		}
		mustClaimAll(t, s, offer, ids)
	})
}

// Members that another program has written delay tasks, but do not keep claims from them, even if one call cannot read all.
func TestVeryManyForeignHeads(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, placed("a", 5)) // so that claims read places
		ids := mustOpen(t, s, define("x"))
		var foreign []redis.Z
		for i := range 4500 {
			foreign = append(foreign, redis.Z{Member: fmt.Sprintf("!%04d", i)})
		}
		must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Heads(class.DefaultQueue), foreign...).Err())
		mustClaimAll(t, s, offerOf(class.DefaultQueue), ids)
		left := s.Conn.Redis.ZCard(t.Context(), s.Keys.Heads(class.DefaultQueue)).Val()
		expect.Compare(t, int(left), "<", len(foreign), "each claim removes some")
	})
}

// A worker finds its task behind very many requirements that no worker serves, and behind those whose tasks are put off for it. A
// claim reads a limited number of them.
func TestTaskBehindManyRequirements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		foreign, putOff int
		resume          bool
	}{
		"not served":        {4000, 0, false},
		"put off":           {0, 600, true},
		"put off, few":      {0, 60, true},
		"both":              {2000, 200, true},
		"both, with few of": {2000, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t)) // its own server, because the test counts commands
			var all []task.Properties
			offer := offerOf("q")
			for i := range c.putOff {
				d := placed("q", 0, fmt.Sprint("t", i))
				offer.Tags = append(offer.Tags, d.Tags...)
				d.Meta = "put off"
				all = append(all, d, d)
			}
			for i := range c.foreign {
				all = append(all, placed("q", 0, fmt.Sprint("x", i)))
			}
			if c.putOff > 0 { // behind a task that is put off in its own requirement
				all = append(all, placed("q", 0, "t0"))
			}
			all = append(all, placed("q", 0))
			for page := range slices.Chunk(all[:len(all)-1], 1000) {
				for i, id := range mustOpen(t, s, page...) {
					if page[i].Meta != "" {
						putOff(t, s, "w", id)
					}
				}
			}
			last := mustOpen(t, s, all[len(all)-1])[0]
			want := 1 + min(c.putOff, 1)
			var got []int64
			for n := 1; len(got) < want; n++ {
				expect.MustTrue(t, n <= 200, "claimed", got, "in", n, "claims, want", want, "tasks until", last)
				before := commandCalls(t, s, "zrangebylex")
				r := redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 60, Offer: &offer}
				claimed := expect.Result(s.Claim(t.Context(), r)).Value(t)
				if len(claimed.Claims) == 0 && !claimed.More {
					expect.MustTrue(t, len(got) >= want, "claim", n, "got nothing, and says that there is no more")
				}
				got = append(got, claimedIDs(claimed)...)
				pages := commandCalls(t, s, "zrangebylex") - before
				expect.True(t, pages <= 700, "claim", n, "read", pages, "pages")
			}
		})
	}
}

// A claim of one task from thousands of requirements costs as many commands as one from a single requirement.
func TestClaimsDoNotPayForOtherRequirements(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	offer := offerOf("one", "q")
	mustOpen(t, s, placed("one", 0), placed("one", 0))
	var all []task.Properties
	for i := range 3000 {
		d := placed("q", 0)
		d.Program, d.Source = fmt.Sprint("p", i), ""
		all = append(all, d)
	}
	offer.Anything = true
	for page := range slices.Chunk(all, 1000) {
		mustOpen(t, s, page...)
	}
	cost := func(queue string) (n int) {
		o := offer
		o.Queues = []class.QueueShare{{Queue: queue}}
		names := []string{"zrange", "zrevrange", "zrangebyscore", "zrangebylex", "hget", "hset", "zrem", "zadd", "exists", "llen", "lpush", "expire", "hmget"}
		for _, name := range names {
			n -= commandCalls(t, s, name)
		}
		expect.MustLen(t, claimFor(t, s, 1, o).Claims, 1, "claimed")
		for _, name := range names {
			n += commandCalls(t, s, name)
		}
		return n
	}
	cost("one")
	one, many := cost("one"), cost("q")
	expect.True(t, many <= one+3, many, "commands from 3,000 requirements", one, "from one")
}

// An id in a place without its task vanishes from the place when a claim meets it.
func TestStrayIDsInPlaces(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, placed("a", 5))
	other := mustOpen(t, s, placed("b", 5))[0]
	for _, member := range []string{fmt.Sprint(other), "99", "no id"} {
		s.Conn.Redis.ZAdd(t.Context(), s.Keys.OpenSet("queue=a"), redis.Z{Member: "2147483642 0000000001.000000 " + member})
	}
	expect.Len(t, claimFor(t, s, 5, offerOf("a")).Claims, 1)
	expect.Equal(t, claimedIDs(claimFor(t, s, 5, offerOf("b"))), []int64{other})
}

// If a key of a place has a wrong type, a call changes nothing.
func TestWrongTypesOfPlaces(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"open:placed", "open:queue=a"} {
		t.Run(key, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				id := mustOpen(t, s, placed("a", 5))[0]
				s.Conn.Redis.Del(t.Context(), s.Keys.Key(key))
				s.Conn.Redis.Set(t.Context(), s.Keys.Key(key), "text", 0)
				before := dump(t, s)
				expect.Result(s.Open(t.Context(), "manager", define("plain"), placed("a", 5))).Fails(t, "WRONGTYPE", "opening")
				m := expect.Result(rules.Cancel(read(t, s, id))).Value(t)
				outcomes, err := s.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}})
				if err == nil {
					expect.Fails(t, outcomes[0].Err, "", "the task was cancelled")
				}
				after := dump(t, s)
				expect.True(t, fmt.Sprint(before) == fmt.Sprint(after), "before", before, "after", after)
			})
		})
	}
}

func clockOf(t *testing.T, s *redisstate.Store) task.Time {
	t.Helper()
	return expect.Result(s.Now(t.Context())).Value(t)
}

// Tasks without queues, priorities and tags cost as many commands as before there were queues: a claim of 100 tasks reads
// whether something is paused, but checks one list less.
func TestPlainClaimsPayNothing(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	withBudget(t, "60") // on a busy machine, a claim would stop early
	var all []task.Properties
	for range 200 {
		all = append(all, define("x"))
	}
	mustOpen(t, s, all...)
	claim := func() {
		expect.MustLen(t, expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 100, Lease: 60})).Value(t).Claims, 100)
	}
	claim() // loads the script
	want := map[string]int{"hget": 1, "zcard": 2, "hmget": 100, "hset": 101, "zrange": 1, "zadd": 2, "zrem": 1, "zrangebyscore": 0, "hlen": 0, "exists": 1}
	before := map[string]int{}
	for name := range want {
		before[name] = commandCalls(t, s, name)
	}
	claim()
	for name, n := range want {
		expect.Equal(t, commandCalls(t, s, name)-before[name], n, "commands", name)
	}
}

// A retry that changes the queue or the priority puts the task into its new place.
func TestReopenedTaskEntersItsNewPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  task.Properties
		changes task.Changes
	}{
		"into a queue":     {define("x"), task.Changes{Queue: new("b")}},
		"from a queue":     {placed("a", 3), task.Changes{Queue: new(""), Priority: new(0)}},
		"to another queue": {placed("a", 3), task.Changes{Queue: new("b")}},
		"without a source": {define("x"), task.Changes{Source: new("")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			id := mustOpen(t, s, c.before)[0]
			mustMove(t, s, id, rules.Cancel)
			m, err := rules.ReopenWith(read(t, s, id), c.changes)
			mustApply(t, s, m, err)
			mustBeSound(t, s)
			p := read(t, s, id).Requirement()
			offer := class.Offer{Queues: []class.QueueShare{{Queue: p.Queue}}, Programs: p.Handler == "", Anything: p.Handler != ""}
			expect.Equal(t, claimedIDs(claimFor(t, s, 5, offer)), []int64{id}, "claimed … from", p)
		})
	}
}

// A claim says when a task becomes due, even if this is so soon that its priority already counts as due.
func TestNextOfATaskThatIsDueSoon(t *testing.T) {
	s := newStore(t)
	for range 20 {
		soon := placed("a", 0)
		soon.StartAfter = clockOf(t, s).Add(0.005)
		mustOpen(t, s, soon)
		for claimed := false; !claimed; {
			c := claimFor(t, s, 5, offerOf("a"))
			claimed = len(c.Claims) > 0
			if !claimed {
				expect.MustTrue(t, c.Next != task.Never, "a claim at", c.Now, "says that no task becomes due; one becomes due at", soon.StartAfter)
			}
		}
	}
}

// If a key of a place has a wrong type, a claim changes no task, or goes on without the key.
func TestClaimWithPlaceKeysOfWrongTypes(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"open:placed", "open:queue=a", "later", "heads:a", "first", "requirements", "wake:queue=a"} {
		t.Run(key, func(t *testing.T) {
			s := newStore(t)
			mustOpen(t, s, placed("a", 0), placed("a", 0), placed("b", 0))
			claimFor(t, s, 1, offerOf("b")) // learns the requirements
			s.Conn.Redis.Del(t.Context(), s.Keys.Key(key))
			s.Conn.Redis.Set(t.Context(), s.Keys.Key(key), "x", 0)
			before, offer := dump(t, s), offerOf("a")
			c, err := s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60, Offer: &offer})
			diff := changed(t, before, dump(t, s))
			if err != nil {
				expect.Equal(t, diff, "")
			}
			if err == nil && len(c.Claims) == 0 && key != "open:queue=a" {
				expect.Equal(t, key, "heads:a", "no error, but nothing was claimed")
			}
		})
	}
}

// mustClaimAll claims tasks, five per call, until none is left. They must be the tasks with these ids, in this order.
func mustClaimAll(t *testing.T, s *redisstate.Store, offer class.Offer, ids []int64) {
	t.Helper()
	var got []int64
	for c := (redisstate.ClaimResult{More: true}); c.More; {
		c = claimFor(t, s, 5, offer)
		got = append(got, claimedIDs(c)...)
	}
	expect.Equal(t, got, ids, "claimed")
}

// After the clock was set back, workers still claim tasks that were due, but none before its start_after.
func TestDueTasksAfterTheClockWasSetBack(t *testing.T) {
	clock, s := withHandClock(t)
	ids := mustOpen(t, s, placed("a", 1))
	later := placed("a", 10)
	later.StartAfter = clockOf(t, s).Add(3000)
	mustOpen(t, s, later)
	clock.pass(3600)
	ids = append(mustOpen(t, s, placed("a", 9)), ids...)
	returnWaiting(t, s)
	clock.pass(-1800)
	c := claimFor(t, s, 5, offerOf("a"))
	expect.Equal(t, claimedIDs(c), ids)
	expect.Equal(t, c.Next, later.StartAfter)
}
