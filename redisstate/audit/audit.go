// Package audit examines the tasks of a namespace, and repairs the inconsistent ones (docs/guarantees.md, "The audit").
package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// An Auditor examines tasks and repairs them.
type Auditor struct{ store *redisstate.Store }

// Of returns the Auditor of a store's namespace.
func Of(s *redisstate.Store) Auditor { return Auditor{s} }

// A Finding describes an inconsistency of one task.
type Finding struct {
	ID      int64
	Problem string
	Repair  rules.Move // the Move that repairs the task; its Verb is empty if no repair is known
	// Certain is false if the task may look inconsistent only because it is moving at this moment. If Certain is true,
	// the task may be repaired at once.
	Certain bool
	// Harmless means that the finding is no inconsistency: a manager of the original TDF has archived the task. The
	// repair adds the properties that this manager did not write.
	Harmless bool
	// Snapshot is a text about the task's state at the examination. If the task does not change, a later examination
	// returns the same text.
	Snapshot string
}

func (f Finding) String() string { return fmt.Sprintf("task %d: %s", f.ID, f.Problem) }

// Check examines all tasks and returns findings about the inconsistent ones. It may run while tasks are processed.
// While a component of the original TDF moves a task, the task may look inconsistent.
func (a Auditor) Check(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	seen := map[int64]bool{}
	add := func(found []Finding) {
		for _, f := range found {
			if !seen[f.ID] && !f.Harmless {
				findings = append(findings, f)
			}
			seen[f.ID] = true
		}
	}
	for ids, err := range a.store.IDs(ctx, 500) {
		if err != nil {
			return findings, err
		}
		found, err := a.examineTwice(ctx, ids)
		if err != nil {
			return findings, err
		}
		add(found)
	}
	var indexes IndexPage
	for done := false; !done; {
		var dangling []Finding
		var err error
		if dangling, indexes, done, err = a.DanglingIDs(ctx, indexes, 500); err != nil {
			return findings, err
		}
		add(dangling)
	}
	return findings, nil
}

// withoutHeld leaves out the tasks that a server has not settled because a grace period holds back its decision.
func (a Auditor) withoutHeld(ctx context.Context, findings []Finding) ([]Finding, error) {
	if len(findings) == 0 {
		return nil, nil
	}
	grace, err := a.store.Presence.Grace(ctx)
	if err != nil {
		return nil, err
	}
	now, err := a.store.Now(ctx)
	return slices.DeleteFunc(findings, func(f Finding) bool {
		return !f.Repair.Repair && now < grace.Holds(&f.Repair)
	}), err
}

// examineTwice examines tasks twice, and returns only the findings that are the same both times, without those that a
// grace period holds back. A task that moves while it is read may look inconsistent once.
func (a Auditor) examineTwice(ctx context.Context, ids []int64) ([]Finding, error) {
	first, err := a.Examine(ctx, ids)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	signs := map[int64]string{}
	var again []int64
	for _, f := range first {
		signs[f.ID] = f.Problem + f.Snapshot
		again = append(again, f.ID)
	}
	second, err := a.Examine(ctx, again)
	if err != nil {
		return nil, err
	}
	second = slices.DeleteFunc(second, func(f Finding) bool { return signs[f.ID] != f.Problem+f.Snapshot })
	return a.withoutHeld(ctx, second)
}

// Walk returns the next page of a walk through all tasks ([walk.Next]).
func (a Auditor) Walk(ctx context.Context, from walk.Page, most int64) ([]int64, walk.Page, bool, error) {
	return walk.Next(ctx, a.store.Conn, from, most)
}

// Examine reads tasks and returns findings about the inconsistent ones. It reads each task in several steps, so a task
// that moves between two steps may look inconsistent.
func (a Auditor) Examine(ctx context.Context, ids []int64) ([]Finding, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	now, err := a.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	// Read the scores before the tasks. If a lease is renewed in between, the repair's fence no longer fits, and the
	// repair does nothing.
	due, err := a.scores(ctx, a.store.Keys.Due(), ids)
	if err != nil {
		return nil, err
	}
	stored, err := a.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules | redisstate.Lists})
	if err != nil {
		return nil, err
	}
	all, err := a.lookUp(ctx, stored)
	if err != nil {
		return nil, err
	}
	inPlace, err := a.inPlace(ctx, stored)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for i, x := range all {
		x.due, x.rank, x.outOfPlace = due[i], len(findings), !inPlace[i]
		s := stored[i].Placement()
		s.Unheard = x.dependents != nil && x.dependents.Val() > 0
		if f, wrong := x.examine(s, now); wrong {
			f.ID = s.ID
			f.Repair.Due = x.fence()
			if t := s.Task; t != nil { // a task that has moved since may look inconsistent in the same way
				f.Repair = f.Repair.IfUnchanged(t)
				f.Snapshot += fmt.Sprint(" ", t.Round, " ", t.Revision)
			}
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// An entries value says where a task was found. Commands that the task does not need are nil.
type entries struct {
	due        *redis.FloatCmd
	scores     []*redis.FloatCmd // in the indexes of its group and queue
	limited    *redis.FloatCmd   // among the tasks that the limit of its key counts
	rank       int               // the number of findings about the tasks before this one in the call
	outOfPlace bool              // the task has a place, but claims do not find it there

	// The number of lists of dependents. A finished task has one if the original TDF has finished it, and a task that
	// does not exist if another program has deleted it.
	dependents *redis.IntCmd
}

// fence returns the fence of a repair: the task's score in `due`, as Examine read it.
func (x entries) fence() string {
	if x.due.Err() != nil {
		return rules.NotDue
	}
	return rules.DueAt(x.due.Val())
}

func (a Auditor) scores(ctx context.Context, key string, ids []int64) ([]*redis.FloatCmd, error) {
	return conn.AskEach(ctx, a.store.Conn, "look up tasks in "+key, ids,
		func(p redis.Pipeliner, id int64) *redis.FloatCmd {
			return p.ZScore(ctx, key, strconv.FormatInt(id, 10))
		})
}

func (x entries) examine(s rules.Placement, now task.Time) (Finding, bool) {
	if m, wrong := s.Repair(now); wrong {
		sound := s.ArchivedByOriginal()
		return Finding{
			Problem: m.Note, Repair: m, Certain: sound || s.LeftByOriginalServer(), Harmless: sound,
			Snapshot: snapshot(s, m),
		}, true
	}
	t := s.Task
	if t == nil {
		return Finding{}, false
	}
	if m, ok := rules.Settle(t, now, s.Invalid); ok && (t.State == task.Open && s.Invalid != nil || x.late(t, now)) {
		return Finding{Problem: "the server has not settled it: " + m.Note, Repair: m, Certain: true}, true
	}
	if m, ok := rules.Rescore(t, s.Score(task.Open), now, x.rank); ok {
		return Finding{Problem: "its score lies in the future: Redis's clock was set back", Repair: m, Certain: true},
			true
	}
	if m, ok := rules.RescoreRunning(t, s.Score(task.Running), now); ok {
		return Finding{
			Problem: "its times lie too far in the future: Redis's clock was set back", Repair: m,
			Certain: true,
		}, true
	}
	if x.limited != nil && x.limited.Err() != nil { // until the repair, too many tasks of the key may run
		why := "the limit of its key does not count it"
		return Finding{Problem: why, Repair: s.Reindex(why), Certain: true}, true
	}
	if x.late(t, now) {
		return Finding{
			Problem: "its entry in due is missing or too late", Repair: rules.Reschedule(t, rules.NextDue(t, now)),
			Certain: true,
		}, true
	}
	if x.misplaced(t) {
		why := "the index of its group or queue does not list it as " + string(t.State)
		return Finding{Problem: why, Repair: s.Reindex(why), Certain: true, Snapshot: why}, true
	}
	if s.Unheard {
		why := "tasks wait for it, but its end was not written down for them"
		return Finding{Problem: why, Repair: s.Reindex(why), Certain: t.Outcome == "", Snapshot: why}, true
	}
	if x.outOfPlace {
		why := "its place in the open list does not have it"
		// a task may move twice while it is examined twice
		at := fmt.Sprint(t.OpenPlace(), t.PlacedIn, t.Current().Linked, t.Current().Waits, t.Ready)
		return Finding{Problem: why, Repair: s.Reindex(why), Snapshot: at}, true
	}
	if why := rules.CounterMismatch(t); why != "" {
		return Finding{Problem: why}, true
	}
	return Finding{}, false
}

func snapshot(s rules.Placement, m rules.Move) string {
	return fmt.Sprint(s.Lists, m.From, m.Round, m.To, m.Note)
}

// late reports whether the task's entry in `due` is missing or too late.
func (x entries) late(t *task.Task, now task.Time) bool {
	look := rules.NextDue(t, now)
	if t.State == task.Executed {
		look = now
	}
	if x.due.Err() != nil {
		return look < task.Never
	}
	return task.Time(x.due.Val()) > max(look, now).Add(1)
}

func (x entries) misplaced(t *task.Task) bool {
	return slices.ContainsFunc(x.scores, func(score *redis.FloatCmd) bool {
		return score.Err() != nil || score.Val() != index.GroupScore(t.State, t.ID)
	})
}

// Repair repairs the tasks that Check found, unless they have changed since the check. It returns the number of
// repaired tasks.
func (a Auditor) Repair(ctx context.Context, who string, findings []Finding) (int, error) {
	var units []redisstate.Unit
	for _, f := range findings {
		if f.Repair.Verb != "" {
			units = append(units, redisstate.Unit{Moves: []rules.Move{f.Repair}})
		}
	}
	outcomes, err := a.store.Apply(ctx, who, units...)
	repaired := 0
	for _, o := range outcomes {
		if o.Err == nil {
			repaired++
		}
	}
	return repaired, err
}

// lookUp looks up tasks in the sets that should have them. It sets Dependents to at least 1 for each finished task
// whose group unfinished tasks need.
func (a Auditor) lookUp(ctx context.Context, stored []redisstate.Stored) ([]entries, error) {
	keys, all := a.store.Keys, make([]entries, len(stored))
	needed := make([]*redis.FloatCmd, len(stored))
	err := a.store.Conn.Pipeline(ctx, "look up tasks in groups, queues and limits", func(p redis.Pipeliner) {
		for i := range stored {
			x, t, id := &all[i], stored[i].Task, strconv.FormatInt(stored[i].ID, 10)
			*x = entries{}
			if t == nil || t.State.Finished() && t.HasLinks {
				x.dependents = p.Exists(ctx, keys.DependentsPrefix()+id)
			}
			if t == nil {
				continue
			}
			for _, of := range index.Of(t) {
				x.scores = append(x.scores, p.ZScore(ctx, of.Key(keys), id))
			}
			if t.State == task.Running && t.LimitKey != "" {
				x.limited = p.ZScore(ctx, keys.Limited(t.LimitKey), id)
			}
			if t.State.Finished() && t.Group != "" {
				needed[i] = p.ZScore(ctx, keys.AwaitedGroups(), t.Group)
			}
		}
	})
	for i, group := range needed {
		if group != nil && group.Err() == nil {
			stored[i].Task.Dependents = max(stored[i].Task.Dependents, 1)
		}
	}
	return all, err
}

// locatedAtOnce limits a call of located.lua.
const locatedAtOnce = 100

// inPlace reports for each task whether claims, or the server, find it in its place. It is true for a task without a
// place, and for one that has moved since it was read.
func (a Auditor) inPlace(ctx context.Context, all []redisstate.Stored) ([]bool, error) {
	in := make([]bool, len(all))
	var asked []int
	for i := range all {
		t := all[i].Task
		in[i] = t == nil || t.State != task.Open || t.OpenPlace() == "" || t.PlacedIn != t.OpenPlace()
		if !in[i] {
			asked = append(asked, i)
		}
	}
	for some := range slices.Chunk(asked, locatedAtOnce) {
		e := &conn.Args{}
		e.Add(a.store.Keys.TaskPrefix())
		for _, i := range some {
			t := all[i].Task
			e.All = append(e.All, t.ID, t.OpenPlace())
			e.Flag(t.MustLink())
		}
		reply, err := a.store.Conn.Run(ctx, "read the places of open tasks", lua.Located,
			[]string{a.store.Keys.List(task.Open)}, e.All, conn.ListOf(len(some), len(some), conn.IsNumber))
		if err != nil {
			return in, err
		}
		for k, found := range conn.List(reply) {
			in[some[k]] = conn.Number(found) == 1
		}
	}
	return in, nil
}
