package dependencies

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

const (
	// dependencies that one call links, releases or reads, and dependents that it tells; the limit keeps the call short
	linksPerCall  = 500
	linksPerRead  = 5000 // dependencies that are read at once
	callsPerTurn  = 10   // calls after which the server does other work
	probesPerCall = 100  // groups
	tasksPerTurn  = 500  // tasks that are read at once
)

// Links are the dependencies of the tasks of a store. Their methods are those that servers and workers need.
type Links struct{ s *redisstate.Store }

// Of returns the dependencies of the tasks of a store.
func Of(s *redisstate.Store) Links { return Links{s} }

// A link is a task or a group that a task waits for.
type link struct {
	of    int // the place of its property in linkFields
	id    int64
	group string // "" for a task
}

var (
	// linkFields are the properties that name what a task waits for.
	linkFields = []string{task.FieldAfter, task.FieldAfterAny, task.FieldAfterGroup, task.FieldAfterGroupAny}
	linkKinds  = []string{"task", "task?", "group", "group?"} // in the notation of link.lua
)

// linksOf returns the dependencies of a task, always in the same order. The values are those of linkFields.
func linksOf(values []any) []link {
	if len(values) < len(linkFields) {
		return nil // the key of the task is no hash
	}
	to := func(i int) *task.Dependencies {
		return &task.Dependencies{Tasks: task.ParseIDs(conn.Text(values[i])), Group: conn.Text(values[i+2])}
	}
	return linksTo(to(0), to(1))
}

// linksTo returns the dependencies with the given properties, either of which may be nil.
func linksTo(after, afterAny *task.Dependencies) (tasks []link) {
	var groups []link
	for i, of := range []*task.Dependencies{after, afterAny} {
		if of == nil {
			continue
		}
		for _, id := range of.Tasks {
			tasks = append(tasks, link{of: i, id: id})
		}
		if of.Group != "" {
			groups = append(groups, link{of: i + 2, group: of.Group})
		}
	}
	return append(tasks, groups...)
}

// A linkJob is an operation of link.lua. It may need several calls.
type linkJob struct {
	all  []link
	done int // the number of dependencies that Redis has handled
	head func(done int, last bool) []any
}

// runLinkJobs carries out operations. After callsPerTurn, it leaves the rest to a later turn. The answer of an
// operation is '+' if all given dependencies are handled, '~' and their number if a part of the operation remains, and
// '-' if it is no longer possible. The last operations of a call may have no answer, because there was no time for
// them.
func (l Links) runLinkJobs(ctx context.Context, jobs []*linkJob) error {
	for calls := 0; len(jobs) > 0 && calls < callsPerTurn; calls++ {
		e := l.linkArgs()
		links, taken := 0, []int{}
		for _, j := range jobs {
			if links >= linksPerCall {
				break
			}
			n := min(len(j.all)-j.done, linksPerCall-links)
			e.All = append(e.All, j.head(j.done, j.done+n == len(j.all))...)
			e.Count(n)
			for _, d := range j.all[j.done : j.done+n] {
				e.Add(linkKinds[d.of], cmp.Or(d.group, strconv.FormatInt(d.id, 10)))
			}
			links, taken = links+max(n, 1), append(taken, n)
		}
		answers, err := l.callLink(ctx, e, len(taken))
		if err != nil {
			return err
		}
		var left []*linkJob
		for i := range answers {
			j := jobs[i]
			j.done += handled(answers[i], taken[i])
			if over := answers[i] == "-" || answers[i] == "+" && j.done == len(j.all); !over {
				left = append(left, j)
			}
		}
		jobs = append(left, jobs[len(answers):]...)
	}
	return nil
}

// handled returns the number of dependencies that an operation has handled, of the given ones.
func handled(answer string, given int) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(answer, "~")); err == nil && n >= 0 && n < given {
		return n
	}
	return given
}

// unsuccessful are the states in which a task did not succeed, and is not archived.
var unsuccessful = []task.State{task.Failed, task.TimedOut, task.Expired}

func (l Links) linkArgs() *conn.Args {
	e := &conn.Args{}
	e.Add(l.s.Keys.TaskPrefix(), l.s.Keys.GroupPrefix(), l.s.Keys.DependentsPrefix(), l.s.Keys.GroupDependentsPrefix(),
		string(task.Succeeded))
	e.Count(linksPerCall)
	e.States(task.UnfinishedStates)
	e.Strings(index.UnfinishedCodes())
	e.Count(len(unsuccessful))
	for _, state := range unsuccessful {
		e.Count(index.GroupCode(state))
	}
	return e
}

// callLink calls link.lua, and returns the answers of its first operations: at least one.
func (l Links) callLink(ctx context.Context, e *conn.Args, operations int) ([]string, error) {
	keys := []string{l.s.Keys.Due(), l.s.Keys.Ended(), l.s.Keys.AwaitedGroups(), l.s.Keys.Groups(), l.s.Keys.Unlinked()}
	reply, err := l.s.Conn.Run(ctx, "link tasks", lua.Link, keys, e.All, conn.LinesOf(1, operations))
	if err != nil {
		return nil, err
	}
	return strings.Split(conn.Text(reply), "\n"), nil
}

// LinkWaiting links waiting tasks to their dependencies (docs/lifecycle.md, "Dependencies"). Afterwards, the tasks that
// need not wait are due. It works on the tasks that have waited for the longest time, up to a limit, and returns their
// number.
func (l Links) LinkWaiting(ctx context.Context) (int, error) {
	members, err := conn.Ask(ctx, l.s.Conn, "read "+l.s.Keys.Unlinked(),
		func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.ZRange(ctx, l.s.Keys.Unlinked(), 0, tasksPerTurn-1)
		})
	if err != nil || len(members) == 0 {
		return 0, err
	}
	ids, err := l.s.Conn.SoundIDs(ctx, l.s.Keys.Unlinked(), members...)
	if err != nil {
		return 0, err
	}
	stored, err := l.s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		return 0, err
	}
	jobs, err := l.linkJobs(ctx, stored)
	if err != nil {
		return 0, err
	}
	return len(members), l.runLinkJobs(ctx, jobs)
}

// linkJobs reads the dependencies of tasks, up to a limit. It returns the operations that link the first tasks.
func (l Links) linkJobs(ctx context.Context, stored []redisstate.Stored) (jobs []*linkJob, err error) {
	for i := range stored {
		if stored[i].Task == nil {
			stored[i].Task = &task.Task{ID: stored[i].ID} // the script finds that the task does not wait
		}
	}
	n := conn.Batch(len(stored), conn.Bound{Limit: linksPerRead, Amount: func(i int) int {
		return stored[i].Task.Links
	}})
	values, err := conn.AskEach(ctx, l.s.Conn, "read dependencies", stored[:n],
		func(p redis.Pipeliner, x redisstate.Stored) *redis.SliceCmd {
			return p.HMGet(ctx, l.s.Keys.Task(x.ID), linkFields...)
		})
	for i, v := range values {
		jobs = append(jobs, linkJobOf(stored[i].Task, linksOf(v.Val())))
	}
	return jobs, err
}

func linkJobOf(t *task.Task, all []link) *linkJob {
	linked := t.Current().Linked // above len(all) only if another program has changed the task
	before := min(linked, len(all))
	return &linkJob{all, before, func(done int, last bool) []any {
		e := &conn.Args{}
		e.Add("link", strconv.FormatInt(t.ID, 10), strconv.Itoa(t.Round), strconv.Itoa(linked+done-before))
		e.Flag(last)
		return e.All
	}}
}

// AwaitedGroups returns a page of the groups that tasks wait for, from the given rank on. Complete has those of these
// groups that are complete, if some of their dependents do not know it yet. If the page is the last one, next is 0.
func (l Links) AwaitedGroups(ctx context.Context, from, most int64) (groups, complete []string, next int64, err error) {
	groups, err = conn.Ask(ctx, l.s.Conn, "read "+l.s.Keys.AwaitedGroups(), func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRange(ctx, l.s.Keys.AwaitedGroups(), from, from+most-1)
	})
	if err != nil || len(groups) == 0 {
		return nil, nil, 0, err
	}
	if int64(len(groups)) == most {
		next = from + most
	}
	waiting, err := l.withDependents(ctx, groups)
	if err != nil || len(waiting) == 0 {
		return groups, nil, next, err
	}
	complete, err = l.completeOf(ctx, waiting)
	return groups, complete, next, err
}

// completeOf returns the groups that are complete.
func (l Links) completeOf(ctx context.Context, groups []string) (complete []string, err error) {
	for len(groups) > 0 {
		n := min(len(groups), probesPerCall)
		e := l.linkArgs()
		for _, group := range groups[:n] {
			e.Add("probe", group)
		}
		answers, err := l.callLink(ctx, e, n)
		if err != nil {
			return nil, err
		}
		for i, answer := range answers {
			if answer == "+" {
				complete = append(complete, groups[i])
			}
		}
		groups = groups[len(answers):]
	}
	return complete, nil
}

// withDependents returns the groups whose lists of dependents still have entries.
func (l Links) withDependents(ctx context.Context, groups []string) (waiting []string, err error) {
	exist, err := conn.AskEach(ctx, l.s.Conn, "read the tasks that wait for groups", groups,
		func(p redis.Pipeliner, group string) *redis.IntCmd {
			return p.Exists(ctx, l.s.Keys.GroupDependents(group))
		})
	for i, exists := range exist {
		if exists.Val() > 0 {
			waiting = append(waiting, groups[i])
		}
	}
	return waiting, err
}

// CompleteGroup updates the dependents of a complete group, up to a limit. It reports whether there are more. The
// arguments are the results of Unsuccessful. If the group is not complete, or if its tasks have moved since
// Unsuccessful, CompleteGroup does nothing.
func (l Links) CompleteGroup(ctx context.Context, group string, archived, others int64) (more bool, err error) {
	for range callsPerTurn {
		e := l.linkArgs()
		e.Add("complete", group, rules.UnmetGroup(group, archived+others), strconv.FormatInt(others, 10))
		answers, err := l.callLink(ctx, e, 1)
		if err != nil || answers[0] != "~" {
			return false, err
		}
	}
	return true, nil
}

// Unsuccessful counts the tasks of a complete group that did not succeed. The result archived is their number in one
// page of archived tasks. The result others is their number among all tasks that are not archived. The first page has
// after = 0. If the page is the last one, next is 0.
func (l Links) Unsuccessful(ctx context.Context, group string, after int64) (archived, others, next int64, err error) {
	counts, err := l.s.Counts(ctx, group)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, state := range unsuccessful {
		others += counts[state]
	}
	of := redisstate.ListQuery{
		Group: group, States: []task.State{task.Archived}, OldestFirst: true,
		Behind: &redisstate.ListEntry{Order: float64(after), Member: strconv.FormatInt(after, 10)},
	}
	entries, complete, err := l.s.Find(ctx, of, groupIDsPerPage)
	if err != nil {
		return 0, 0, 0, err
	}
	ids := redisstate.IDsOf(entries)
	stored, err := l.s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Head})
	for _, t := range stored {
		if t.Task != nil && t.Task.Outcome != "" && t.Task.Outcome != string(task.Succeeded) {
			archived++
		}
	}
	if !complete && len(ids) > 0 {
		next = ids[len(ids)-1]
	}
	return archived, others, next, err
}
