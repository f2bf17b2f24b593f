package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

func after(ids ...int64) task.Properties {
	d := define()
	d.After = &task.Dependencies{Tasks: ids}
	return d
}

func afterAny(ids ...int64) task.Properties {
	d := define()
	d.AfterAny = &task.Dependencies{Tasks: ids}
	return d
}

func inGroup(group string) task.Properties {
	d := define()
	d.Group = group
	return d
}

// settle runs rounds of the server until it moves nothing.
func (s *site) settle() {
	s.Helper()
	for range 1000 {
		if s.round().Total() == 0 {
			return
		}
	}
	s.Fatal("the server always finds something to do")
}

// runAll claims and ends all tasks that can be claimed, until none is left. It returns the ids in the order of the claims.
// The program of the tasks in fails fails.
func (s *site) runAll(fails ...int64) (ran []int64) {
	s.Helper()
	for s.settle(); ; s.settle() {
		c := expect.Result(s.store.Claim(s.Context(), redisstate.ClaimParams{Worker: "w", Most: 100, Lease: 60})).Value(s)
		if len(c.Claims) == 0 {
			return ran
		}
		for _, claim := range c.Claims {
			ran = append(ran, claim.Task.ID)
			r := rules.Result{Output: "out", Exit: "0"}
			if slices.Contains(fails, claim.Task.ID) {
				r = rules.Result{Error: "no", Exit: "1"}
			}
			expect.NoError(s, s.execute(claim, r))
		}
	}
}

func (s *site) state(id int64) task.State {
	s.Helper()
	stored := expect.Result(s.store.ReadOne(s.Context(), id, redisstate.Want{Fields: redisstate.Head})).Value(s)
	return stored.Task.State
}

func (s *site) apply(m rules.Move, err error) error {
	s.Helper()
	if err != nil {
		return err
	}
	outcomes := expect.Result(s.store.Apply(s.Context(), "user", redisstate.Unit{Moves: []rules.Move{m}})).Value(s)
	return outcomes[0].Err
}

func (s *site) task(id int64) *task.Task {
	s.Helper()
	stored := expect.Result(s.store.ReadOne(s.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(s)
	return stored.Task
}

// A task runs after its dependencies, also if they had ended before it was opened. If one does not succeed, the task fails, or
// runs all the same with after_any (docs/lifecycle.md, "Dependencies").
func TestDependencies(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		first := s.open(define(), define())
		second := s.open(after(first...), after(first[0]), afterAny(first...))
		s.settle()
		for _, id := range second {
			one := s.task(id)
			expect.True(s, one.Waits(), "task", id, one)
			expect.NotEqual(s, one.Links, 0, "task", id)
			expect.Equal(s, one.Current().Waits, one.Links, "task", id)
		}
		expect.Equal(s, fmt.Sprint(s.runAll(first[1])), "[1 2 4 5]", "ran")
		expect.Equal(s, s.mustBe(3, task.Failed, 0).LastError(), "a dependency was not met: task 2: failed")
		late := s.open(after(first[0]), afterAny(first[1]), after(3))
		expect.Equal(s, fmt.Sprint(s.runAll()), "[6 7]", "ran")
		s.mustBe(late[2], task.Failed, 0)
		s.nothingLeft()
	})
}

// nothingLeft checks that no task needs another one, and that no keys of waiting tasks are left.
func (s *site) nothingLeft() {
	s.Helper()
	s.checkConsistent()
	for _, pattern := range []string{"$dependents:*", "$group_dependents:*", "$ended", "$awaited_groups", "$open:waiting", "$unlinked"} {
		expect.Len(s, s.do("KEYS", pattern).([]any), 0, "left")
	}
	last, _ := s.cli.Get(s.Context(), s.ns+":task_id").Int()
	for id := 1; id <= last; id++ {
		n := s.do("HGET", fmt.Sprintf("$task:%d", id), "dependents")
		if n != nil {
			expect.Equal[any](s, n, "0", "task", id)
		}
		expect.Equal(s, s.do("HGET", fmt.Sprintf("$task:%d", id), "endings"), nil, id)
	}
}

// The first ending counts. A retry in the meantime does not change it for the dependents.
func TestFirstEndingCounts(t *testing.T) {
	s := newSite(t)
	s.open(define())
	s.open(after(1))
	s.settle()
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Error: "no"}))
	m, ok := rules.Settle(s.task(1), s.now(), nil)
	expect.MustTrue(s, ok, "task 1 is not settled")
	for _, m := range []func() (rules.Move, error){
		func() (rules.Move, error) { return m, nil },
		func() (rules.Move, error) { return rules.Reopen(s.task(1)) },
	} {
		expect.NoError(s, s.apply(m()))
	}
	s.open(after(1)) // begins to wait after the retry
	expect.Equal(s, fmt.Sprint(s.runAll()), "[1 3]")
	s.mustBe(2, task.Failed, 0)
	s.nothingLeft()
}

// A failed branch runs again if its tasks are retried, and so does a cancelled task.
func TestRetryOfABranch(t *testing.T) {
	s := newSite(t)
	s.open(define())
	s.open(after(1))
	s.open(after(2))
	s.runAll(1)
	for id := int64(1); id <= 3; id++ {
		s.mustBe(id, task.Failed, 0)
	}
	expect.NoError(s, s.apply(rules.Reopen(s.task(3))))
	s.runAll()
	s.mustBe(3, task.Failed, 1) // its dependency is still failed
	for id := int64(1); id <= 3; id++ {
		expect.NoError(s, s.apply(rules.Reopen(s.task(id))))
	}
	s.settle()
	expect.NoError(s, s.apply(rules.Cancel(s.task(2))))
	expect.NoError(s, s.apply(rules.Reopen(s.task(2))))
	expect.Equal(s, fmt.Sprint(s.runAll()), "[1 2]")
	s.mustBe(3, task.Failed, 2) // the first ending of task 2 was the cancellation
	expect.Contains(s, s.task(3).LastError(), "task 2: expired")
	s.nothingLeft()
}

// A task that unfinished tasks need is neither removed by hand nor by the server. Later, the server removes it.
func TestNeededTasksStay(t *testing.T) {
	s := newSite(t)
	d := define()
	d.KeepFinished = 1e-6
	s.open(d)
	s.open(after(1), afterAny(1))
	s.settle()
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Exit: "0"}))
	s.settle()
	expect.Result(rules.Remove(s.mustBe(1, task.Succeeded, 0))).FailsWith(s, rules.ErrNeeded)
	unaware := *s.task(1)
	unaware.Dependents = 0
	expect.Fails(s, s.apply(rules.Remove(&unaware)), ": unfinished tasks need it")
	expect.Equal(s, fmt.Sprint(s.runAll()), "[2 3]")
	s.do("ZADD", "$due", 1, 1)
	s.settle()
	expect.True(s, s.isGone(1), "task 1 is not removed")
}

// A task waits until a group is closed and all of its tasks are finished.
func TestGroupDependencies(t *testing.T) {
	t.Parallel()
	for _, archive := range []bool{false, true} {
		t.Run(fmt.Sprint("archive=", archive), func(t *testing.T) {
			onEach(t, func(s *site) {
				all, some := inGroup("all"), inGroup("some")
				strict, loose := define(), define()
				strict.After, loose.AfterAny = &task.Dependencies{Group: "all"}, &task.Dependencies{Group: "some"}
				bad := define()
				bad.After = &task.Dependencies{Group: "some", Tasks: []int64{1}}
				s.open(all, all, some, some)
				s.open(strict, loose, bad)
				expect.Equal(s, fmt.Sprint(s.runAll(4)), "[1 2 3 4]")
				if archive {
					for id := int64(1); id <= 4; id++ {
						expect.NoError(s, s.apply(rules.Archive(s.task(id))))
					}
				}
				unaware, err := rules.Remove(s.task(1))
				unaware.Group = "all"
				if err == nil {
					expect.Fails(s, s.apply(unaware, nil), "after_group")
				}
				expect.Len(s, s.runAll(), 0, "the groups are not closed, but these tasks ran")
				for _, group := range []string{"all", "some"} {
					expect.NoError(s, s.store.Groups.CloseGroup(s.Context(), group))
				}
				expect.Equal(s, fmt.Sprint(s.runAll()), "[5 6]")
				expect.Contains(s, s.mustBe(7, task.Failed, 0).LastError(), `group "some": 1 task did not succeed`)
				expect.FailsWith(s, s.store.Groups.ExtendGroup(s.Context(), "all"), task.ErrGroupDecided)
				s.nothingLeft()
			})
		})
	}
}

// Random graphs agree with a model: a task runs if all of its strict dependencies have succeeded and the others have ended.
func TestGraphsAgreeWithTheModel(t *testing.T) {
	s := newSite(t)
	for seed := range uint64(8) {
		s.graph(rand.New(rand.NewPCG(seed, 1)), 40)
	}
	s.nothingLeft()
}

func (s *site) graph(r *rand.Rand, n int) {
	s.Helper()
	all := make([]task.Properties, n)
	succeeds, endsAs := make([]bool, n), make([]task.State, n)
	shuffled := r.Perm(n) // places of the tasks in the call; a task waits only for tasks that come before it in this list
	for i, at := range shuffled {
		d := define()
		strict, loose := &task.Dependencies{}, &task.Dependencies{}
		succeeds[at] = r.IntN(8) > 0
		endsAs[at] = task.Succeeded
		if !succeeds[at] {
			endsAs[at] = task.Failed
		}
		for range r.IntN(4) {
			if i == 0 {
				break
			}
			before := shuffled[r.IntN(i)]
			if r.IntN(3) == 0 {
				loose.Places = append(loose.Places, before)
				continue
			}
			strict.Places = append(strict.Places, before)
			if endsAs[before] != task.Succeeded {
				endsAs[at] = task.Failed
			}
		}
		d.After, d.AfterAny = strict, loose
		all[at] = d
	}
	opened := expect.Result(s.store.OpenAll(s.Context(), "manager", "", all...)).Value(s)
	var fails []int64
	for i, o := range opened {
		if !succeeds[i] {
			fails = append(fails, o.ID)
		}
	}
	ran := s.runAll(fails...)
	position := map[int64]int{}
	for i, id := range ran {
		position[id] = i + 1
	}
	for i, o := range opened {
		expect.Equal(s, s.state(o.ID), endsAs[i], "task", o.ID)
		for _, of := range []*task.Dependencies{all[i].After, all[i].AfterAny} {
			for _, at := range of.Places {
				if position[o.ID] > 0 {
					expect.Compare(s, position[opened[at].ID], "<=", position[o.ID], o.ID)
				}
			}
		}
	}
}

// Other programs can write anything into the keys of dependencies. The server goes on, and a waiting task does not wait for ever.
func TestForeignLinks(t *testing.T) {
	s := newSite(t)
	s.open(define(), inGroup("g"))
	s.do("SET", "$dependents:1", "x")
	s.do("ZADD", "$ended", 1, "x", 1, "1:0:running", 1, "99:0:failed", 1, "-1:0:failed", 1, "1:00:failed")
	s.do("ZADD", "$awaited_groups", 1, "no such group")
	s.do("RPUSH", "$group_dependents:no such group", "x", "99:0", "1:7")
	s.do("HSET", "$task:1", "dependents", "many", "endings", "x", "0:released", "7e3")
	group := define()
	group.After = &task.Dependencies{Group: "g"}
	s.open(after(1), after(2), group)
	s.do("HSET", "$task:4", "links", "3", "0:linked", "00", "0:waits", "-1", "0:released", "1000000")
	s.settle()
	expect.Contains(s, s.mustBe(3, task.Failed, 0).LastError(), "is not a list")
	n := s.do("ZCARD", "$ended")
	expect.True(s, n.(int64) == 0, n, "endings are left")
	s.do("RPUSH", "$dependents:2", "x", "1:0", "4:00", "4:0:0")
	expect.Equal(s, fmt.Sprint(s.runAll()), "[1 2 4]")
	s.do("DEL", "$awaited_groups")
	s.do("SET", "$awaited_groups", "x")
	expect.Result(s.server.RunOnce(s.Context())).Fails(s, "awaited_groups")
}

// Each dependency costs one entry, whatever the shape of the graph is.
func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	const n = 3_000
	s := newSite(t)
	star := make([]task.Properties, n)
	for i := range star {
		star[i] = after(1)
	}
	s.open(define())
	ids := s.open(star...) // n dependents of one task
	last := s.open(after(ids...))[0]
	ran := s.runAll()
	expect.MustLen(t, ran, n+2)
	expect.MustEqual(t, ran[0], 1)
	expect.MustEqual(t, ran[n+1], last)
	s.nothingLeft()
}

// The failure of the first task of a long chain fails all others. One round of the server does a part of this.
func TestChain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	chain := []task.Properties{define()}
	for i := range 299 {
		d := define()
		d.After = &task.Dependencies{Places: []int{i}}
		chain = append(chain, d)
	}
	expect.Result(s.store.OpenAll(t.Context(), "manager", "", chain...)).OK(t)
	expect.Len(t, s.runAll(1), 1)
	expect.Equal(t, s.state(300), task.Failed)
	s.nothingLeft()
}

// Two servers handle the same graph at the same time, while workers end tasks and a user cancels and retries them. In the end, no
// task waits, and no counter is wrong.
func TestTwoServersShareAGraph(t *testing.T) {
	s := newSite(t)
	const n = 120
	all := make([]task.Properties, n)
	for i := range all {
		all[i] = inGroup("g")
		d := &task.Dependencies{}
		for _, by := range []int{1, 7, 30} {
			if i >= by && i%3 > 0 {
				d.Places = append(d.Places, i-by)
			}
		}
		if all[i].After = d; i%5 == 0 {
			all[i].After, all[i].AfterAny = nil, d
		}
	}
	expect.Result(s.store.OpenAll(t.Context(), "manager", "", all...)).OK(t)
	last := define()
	last.AfterAny = &task.Dependencies{Group: "g"}
	s.open(last)
	expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
	ctx, stop := context.WithCancel(t.Context())
	var servers, users sync.WaitGroup
	for i := range 2 {
		store := connect(t, s.addr, s.ns)
		srv := New(fmt.Sprint("server-", i), settings, store, quiet())
		servers.Go(func() {
			for ctx.Err() == nil {
				if _, err := srv.RunOnce(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 2 {
		store, r := connect(t, s.addr, s.ns), rand.New(rand.NewPCG(uint64(i), 2))
		users.Go(func() {
			for range 300 {
				err := workAndSteer(ctx, store, r, n)
				expect.True(t, err == nil, err)
			}
		})
	}
	users.Wait()
	stop()
	servers.Wait()
	for range 3 { // a retry waits again for the tasks that are retried after it
		for id := int64(1); id <= n+1; id++ {
			if one := s.task(id); one.State.Finished() && one.Outcome != string(task.Succeeded) {
				expect.NoError(t, s.apply(rules.Reopen(one)))
			}
		}
		s.endRunning()
	}
	for id := int64(1); id <= n+1; id++ {
		got := s.state(id)
		if got != task.Succeeded {
			expect.Equal(t, id, n+1)
			expect.True(t, got.Finished(), "task", id, "is", got, s.task(id).Log)
		}
	}
	s.nothingLeft()
}

// endRunning ends the rounds that workers have left, and then all others.
func (s *site) endRunning() {
	s.Helper()
	ids := expect.Result(s.store.List(s.Context(), task.Running, "", 0, 1000)).Value(s)
	for _, id := range ids {
		one := s.task(id)
		expect.NoError(s, s.execute(redisstate.Claim{Task: one, ID: one.Current().Claim}, rules.Result{Exit: "0"}))
	}
	s.runAll()
}

// workAndSteer executes some tasks, cancels one task, and retries another one.
func workAndSteer(ctx context.Context, store *redisstate.Store, r *rand.Rand, n int64) error {
	c, err := store.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 1 + r.IntN(5), Lease: 60})
	if err != nil {
		return err
	}
	for _, claim := range c.Claims {
		result := rules.Result{Exit: "0"}
		if r.IntN(6) == 0 {
			result.Error = "no"
		}
		m, err := rules.Execute(claim.Task, claim.ID, result)
		if err == nil {
			_, err = store.Execute(ctx, "w", m)
		}
		if err != nil {
			return err
		}
	}
	for _, steer := range []func(*task.Task) (rules.Move, error){rules.Cancel, rules.Reopen} {
		stored, err := store.ReadOne(ctx, 1+r.Int64N(n), redisstate.Want{Fields: redisstate.Rules})
		if err != nil {
			return err
		}
		if stored.Task.State == task.Succeeded || r.IntN(3) > 0 {
			continue
		}
		if m, err := steer(stored.Task); err == nil {
			if _, err := store.Apply(ctx, "user", redisstate.Unit{Moves: []rules.Move{m}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// An entry of an earlier round does not count for the present round.
func TestEntriesOfEarlierRounds(t *testing.T) {
	s := newSite(t)
	s.open(define(), define())
	s.open(after(1, 2))
	s.settle()
	for _, steer := range []func(*task.Task) (rules.Move, error){rules.Cancel, rules.Reopen} {
		expect.NoError(s, s.apply(steer(s.task(3))))
	}
	s.settle()
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Exit: "0"}))
	s.settle()
	got := s.task(3)
	expect.True(s, got.Waits(), "after the end of one of two dependencies", got.Current())
	expect.Equal(s, got.Current().Waits, 1)
	expect.Equal(s, fmt.Sprint(s.runAll()), "[2 3]")
	s.nothingLeft()
}

// A task that ran in several rounds no longer needs its dependencies after the last one.
func TestDependenciesOfSeveralRounds(t *testing.T) {
	s := newSite(t)
	s.open(define(), inGroup("g"))
	expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
	d := define()
	d.MaxFails, d.After = 150, &task.Dependencies{Tasks: []int64{1}, Group: "g"}
	s.open(d)
	ends := []func(c redisstate.Claim) error{
		func(c redisstate.Claim) error { return s.execute(c, rules.Result{Error: "no"}) },
		func(c redisstate.Claim) error { return s.apply(rules.Release(c.Task, "test")) },
		func(c redisstate.Claim) error { return s.apply(rules.Requeue(s.task(c.Task.ID), false)) },
	}
	for s.settle(); s.state(3) == task.Open && s.task(3).Waits(); s.settle() {
		expect.NoError(t, s.execute(s.claim(60), rules.Result{Exit: "0"}))
	}
	for i := range 120 {
		expect.NoError(t, ends[i%len(ends)](s.claim(60)))
		if i%len(ends) == 0 {
			s.settle()
		}
	}
	expect.Equal(t, fmt.Sprint(s.runAll()), "[3]")
	expect.Compare(t, s.mustBe(3, task.Succeeded, 120).Current().Linked, "<=", 0)
	s.nothingLeft()
}

// While tasks need a group, neither the server nor the audit removes the outputs of its tasks. A new server knows that, too.
func TestOutputsOfAnAwaitedGroup(t *testing.T) {
	s := newSite(t)
	d := inGroup("g")
	d.KeepOutputs, d.KeepFinished = 1e-6, 1e-6
	s.open(d, d)
	group := define()
	group.AfterAny = &task.Dependencies{Group: "g"}
	s.open(group)
	s.settle()
	for range 2 {
		expect.NoError(t, s.execute(s.claim(60), rules.Result{Output: "out", Exit: "0"}))
	}
	for range 3 {
		s.do("ZADD", "$due", "XX", 1, 1, 1, 2)
		s.server = New("another", settings, s.store, quiet())
		s.settle()
		for id := int64(1); id <= 2; id++ {
			one := s.mustBe(id, task.Succeeded, 0)
			expect.MustEqual(t, one.Current().Output, "out")
			expect.MustTrue(t, s.due(id) >= s.now()+50, one.Current(), "due at", s.due(id))
		}
	}
	s.checkConsistent()
	expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
	expect.Equal(t, fmt.Sprint(s.runAll()), "[3]")
	s.do("ZADD", "$due", 1, 1, 1, 2)
	s.settle()
	expect.True(t, s.isGone(1), "the tasks are still there")
	expect.True(t, s.isGone(2), "the tasks are still there")
}

// If a dependency is due for removal when a task begins to wait for it, the task learns its end first.
func TestLinkBeforeRemoval(t *testing.T) {
	s := newSite(t)
	d := inGroup("g")
	d.KeepArchived = 0
	s.open(d)
	expect.MustEqual(t, fmt.Sprint(s.runAll()), "[1]")
	group := define()
	group.After = &task.Dependencies{Group: "g"}
	m := expect.Result(rules.Archive(s.task(1))).Value(t)
	expect.Result(s.store.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{after(1), group}})).OK(t)
	expect.Equal(t, fmt.Sprint(s.runAll()), "[2]")
	expect.NoError(t, s.store.Groups.CloseGroup(t.Context(), "g"))
	expect.Equal(t, fmt.Sprint(s.runAll()), "[3]")
	s.do("DEL", "$task:1", "$group:g")
	s.do("ZREM", "$archived", 1)
	s.open(group)
	s.runAll()
	expect.Contains(t, s.mustBe(4, task.Failed, 0).LastError(), "group g has no tasks")
	s.nothingLeft()
}

// A component of an older release ends a task without telling the tasks that wait for it. The audit finds this.
func TestAuditFindsUnheardEndings(t *testing.T) {
	t.Parallel()
	for _, archive := range []bool{false, true} {
		onEach(t, func(s *site) {
			s.open(define(), define())
			s.open(after(1))
			s.settle()
			s.do("HDEL", "$task:1", "links")
			expect.MustEqual(t, fmt.Sprint(s.runAll()), "[1 2]")
			if archive {
				expect.NoError(t, s.apply(rules.Archive(s.task(1))))
			}
			s.do("HSET", "$task:1", "links", 0)
			findings := expect.Result(audit.Of(s.store).Check(t.Context())).Value(t)
			expect.MustLen(t, findings, 1)
			expect.MustEqual(t, expect.Result(audit.Of(s.store).Repair(t.Context(), "server", findings)).Value(t), 1)
			expect.Equal(t, fmt.Sprint(s.runAll()), "[3]")
			s.nothingLeft()
		})
	}
}

// A task that waited for a group without tasks does not release the group for the tasks that wait for it later.
func TestGroupThatWasEmpty(t *testing.T) {
	s := newSite(t)
	loose, strict := define(), define()
	loose.AfterAny, strict.After = &task.Dependencies{Group: "g"}, &task.Dependencies{Group: "g"}
	s.open(loose)
	s.settle()
	c := s.claim(60)
	s.open(inGroup("g"))
	s.open(strict)
	s.settle()
	expect.NoError(s, s.execute(c, rules.Result{Exit: "0"}))
	expect.NoError(s, s.store.Groups.CloseGroup(s.Context(), "g"))
	expect.Equal(s, fmt.Sprint(s.runAll()), "[2 3]")
	s.nothingLeft()
}

// pagesOfGroup is a store in which the tasks of a group are archived while the server counts them.
type pagesOfGroup struct {
	Store
	pages     [][3]int64 // results of Unsuccessful
	completed []int64
}

func (p *pagesOfGroup) Unsuccessful(context.Context, string, int64) (archived, others, next int64, err error) {
	page := p.pages[0]
	p.pages = p.pages[1:]
	return page[0], page[1], page[2], nil
}

func (p *pagesOfGroup) CompleteGroup(_ context.Context, _ string, archived, others int64) (bool, error) {
	p.completed = []int64{archived, others}
	return false, nil
}

// If tasks of a group are archived while the server counts those that did not succeed, the count begins again.
func TestArchivedWhileCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pages [][3]int64
		want  string
	}{
		{[][3]int64{{0, 0, 0}}, "[0 0]"},
		{[][3]int64{{2, 1, 10}, {1, 1, 0}}, "[3 1]"},
		{[][3]int64{{0, 1, 10}, {0, 0, 0}, {1, 0, 10}, {0, 0, 0}}, "[1 0]"},
	} {
		store := &pagesOfGroup{pages: c.pages}
		s := &Server{store: store}
		expect.NoError(t, s.completeGroup(t.Context(), "g"), c.want)
		expect.Equal(t, fmt.Sprint(store.completed), c.want)
		expect.Len(t, store.pages, 0, c.want)
	}
}

// A change of a waiting task counts, even if the task must still be linked, or need not wait any more.
func TestChangeOfAWaitingTask(t *testing.T) {
	s := newSite(t)
	s.open(define())
	s.open(after(1))
	soon := s.now().Add(60)
	change := func() {
		expect.NoError(s, s.apply(rules.Change(s.task(2), task.Changes{EndBefore: new(soon.Std())})))
	}
	change()
	s.settle()
	expect.Equal(s, s.due(2), soon, "due at")
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Exit: "0"}))
	m, _ := rules.Settle(s.task(1), s.now(), nil)
	expect.NoError(s, s.apply(m, nil))
	expect.Result(dependencies.Of(s.store).HandleEndings(s.Context())).OK(s)
	soon++
	change() // task 2 is due, because it need not wait any more
	expect.Equal(s, fmt.Sprint(s.runAll()), "[2]")
}

// A report settles a task between two rounds of the server. The tasks that wait for it may then run, although the server
// has just looked for complete groups.
func TestEndingOfASettledResult(t *testing.T) {
	s := newSite(t)
	s.open(define(), after(1))
	s.settle()
	c, r := s.claim(60), rules.Result{Exit: "0"}
	m := expect.Result(rules.Execute(c.Task, c.ID, r)).Value(s)
	s.server.clock = func() time.Time { return s.server.links.looked }
	expect.NoError(s, s.apply(m.Settled(c.Task, r), nil))
	_, failed, err := s.server.settle(s.Context())
	expect.NoError(s, failed)
	expect.NoError(s, err)
	expect.Equal(s, s.claim(60).Task.ID, 2)
}

// The end of the last task of a group, and the closing of a group, wake the server if tasks wait for the group. It then
// looks for complete groups, although it has just done so.
func TestEndOfAnAwaitedGroup(t *testing.T) {
	onEach(t, func(s *site) {
		of := define()
		of.After = &task.Dependencies{Group: "g"}
		s.open(inGroup("g"), inGroup("g"), of)
		s.settle()
		for _, tokens := range []string{"0", "1"} { // for the first task, and for the last
			s.do("DEL", "$wake:server")
			c, r := s.claim(60), rules.Result{Exit: "0"}
			m := expect.Result(rules.Execute(c.Task, c.ID, r)).Value(s)
			outcomes := expect.Result(s.store.Execute(s.Context(), "w", m.Settled(c.Task, r))).Value(s)
			expect.NoError(s, outcomes[0].Err)
			expect.Equal(s, fmt.Sprint(s.do("LLEN", "$wake:server")), tokens)
		}
		s.do("DEL", "$wake:server")
		expect.NoError(s, s.store.Groups.CloseGroup(s.Context(), "g"))
		expect.Equal(s, fmt.Sprint(s.do("LLEN", "$wake:server")), "1")
		s.server.clock = func() time.Time { return s.server.links.looked }
		s.server.links.woken = true
		_, failed, err := s.server.settle(s.Context())
		expect.NoError(s, failed)
		expect.NoError(s, err)
		expect.Equal(s, s.claim(60).Task.ID, 3)
	})
}

// A new waiting task wakes the server.
func TestWaitingTaskWakesTheServer(t *testing.T) {
	s := newSite(t)
	s.open(define())
	s.do("DEL", "$wake:server")
	s.open(after(1))
	expect.Equal(s, fmt.Sprint(s.do("LLEN", "$wake:server")), "1")
}

// If another program puts a key of a wrong type in the place of a task, calls that name the task report an error or go on.
func TestDependencyOfAWrongType(t *testing.T) {
	s := newSite(t)
	s.open(define())
	s.do("DEL", "$task:1")
	s.do("SET", "$task:1", "x")
	s.do("ZREM", "$open", 1)
	s.do("ZADD", "$failed", 1, 1)
	expect.Fails(s, dependencies.Check(s.Context(), s.store, []task.Properties{after(1)}), "there is no task 1")
	expect.NoError(s, dependencies.EachDependent(s.Context(), s.store, func(d dependencies.Dependent) { s.Error(d) }))
}

// Another program deletes tasks for which other tasks wait, with or without their ids. The audit finds this.
func TestAuditFindsDeletedDependencies(t *testing.T) {
	t.Parallel()
	for _, entries := range []bool{false, true} {
		onEach(t, func(s *site) {
			s.open(define(), define())
			loose := define()
			loose.AfterAny = &task.Dependencies{Tasks: []int64{1}}
			s.open(after(1, 2), loose)
			s.settle()
			s.do("DEL", "$task:1")
			if !entries {
				s.do("ZREM", "$open", 1)
				s.do("ZREM", "$due", 1)
			}
			findings := expect.Result(audit.Of(s.store).Check(t.Context())).Value(t)
			expect.MustLen(t, findings, 1)
			expect.Contains(t, findings[0].Problem, "for which tasks wait")
			expect.MustEqual(t, expect.Result(audit.Of(s.store).Repair(t.Context(), "server", findings)).Value(t), 1)
			expect.Equal(t, fmt.Sprint(s.runAll()), "[2 4]")
			expect.Contains(t, s.mustBe(3, task.Failed, 0).LastError(), "task 1 does not exist")
			s.nothingLeft()
		})
	}
}

// A task that fails because of one dependency leaves nothing in the lists of its other dependencies.
func TestNothingIsLeftOfAFailedWait(t *testing.T) {
	s := newSite(t)
	s.open(define(), inGroup("g"))
	d := define()
	d.After = &task.Dependencies{Tasks: []int64{1}, Group: "g"}
	s.open(d)
	expect.Equal(t, fmt.Sprint(s.runAll(1)), "[1 2]")
	s.mustBe(3, task.Failed, 0)
	s.nothingLeft()
}
