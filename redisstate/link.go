package redisstate

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

//go:embed link.lua
var linkSource string

var linkScript = newFreeingScript(prelude + places + opening + linkSource)

const (
	linksPerCall = 500         // dependencies that one call links or releases, and dependents that it tells; the limit keeps the call short
	linksPerRead = 5000        // dependencies that are read at once
	linkTime     = time.Second // the longest time for which link jobs keep the server from heartbeats and from settling
)

// A dependency is a task or a group that a task waits for, in the notation of link.lua.
type dependency struct{ kind, name string }

func (d dependency) isGroup() bool { return strings.HasPrefix(d.kind, "group") }

var dependencyNames = []string{tdf.FieldAfter, tdf.FieldAfterAny, tdf.FieldAfterGroup, tdf.FieldAfterGroupAny}

// dependenciesOf returns the dependencies of a task, always in the same order. The values are those of dependencyNames.
func dependenciesOf(values []any) (all []dependency) {
	if len(values) < len(dependencyNames) {
		return nil // the key of the task is no hash
	}
	for i, kind := range []string{"task", "task?"} {
		for _, id := range tdf.ParseIDs(text(values[i])) {
			all = append(all, dependency{kind, strconv.FormatInt(id, 10)})
		}
	}
	for i, kind := range []string{"group", "group?"} {
		if name := text(values[i+2]); name != "" {
			all = append(all, dependency{kind, name})
		}
	}
	return all
}

// A linkJob is an operation of link.lua. It may need several calls.
type linkJob struct {
	all  []dependency
	done int // the number of dependencies that Redis has handled
	head func(done int, last bool) []any
}

// runLinkJobs carries out operations. After linkTime, it leaves the rest to another call. The answer of an operation is '+'
// if it is complete, '~' if a part of it remains, and '-' if it is no longer possible.
func (s *Store) runLinkJobs(ctx context.Context, jobs []*linkJob) error {
	for begun := time.Now(); len(jobs) > 0 && time.Since(begun) < linkTime; {
		e := s.linkArgs()
		links, taken := 0, []int{}
		for _, j := range jobs {
			if links >= linksPerCall {
				break
			}
			n := min(len(j.all)-j.done, linksPerCall-links)
			e.args = append(e.args, j.head(j.done, j.done+n == len(j.all))...)
			e.count(n)
			for _, d := range j.all[j.done : j.done+n] {
				e.add(d.kind, d.name)
			}
			links, taken = links+max(n, 1), append(taken, n)
		}
		answers, err := s.callLink(ctx, e, len(taken))
		if err != nil {
			return err
		}
		var left []*linkJob
		for i, n := range taken {
			j := jobs[i]
			j.done += n
			if over := answers[i] == "-" || answers[i] == "+" && j.done == len(j.all); !over {
				left = append(left, j)
			}
		}
		jobs = append(left, jobs[len(taken):]...)
	}
	return nil
}

// unsuccessful are the states in which a task did not succeed, and is not archived.
var unsuccessful = []tdf.State{tdf.Failed, tdf.TimedOut, tdf.Expired}

func (s *Store) linkArgs() encoder {
	var e encoder
	e.add(s.keys.taskPrefix(), s.keys.groupPrefix(), s.keys.dependentsPrefix(), s.keys.groupDependentsPrefix(), string(tdf.Succeeded))
	e.count(linksPerCall)
	var states []string
	for _, state := range tdf.States {
		if !state.Finished() {
			states = append(states, string(state))
		}
	}
	e.strings(states)
	e.unfinishedCodes(true)
	e.count(len(unsuccessful))
	for _, state := range unsuccessful {
		e.count(groupCode(state))
	}
	return e
}

// callLink calls link.lua, and returns the answers of its operations.
func (s *Store) callLink(ctx context.Context, e encoder, operations int) ([]string, error) {
	keys := []string{s.keys.Due(), s.keys.ended(), s.keys.awaitedGroups(), s.keys.groups()}
	reply, err := s.run(ctx, linkScript, keys, e.args)
	if err != nil {
		return nil, fmt.Errorf("link tasks: redis: %w", err)
	}
	answers := strings.Split(text(reply), "\n")
	if len(answers) != operations {
		return nil, fmt.Errorf("link tasks: redis: the script answered %d of %d operations", len(answers), operations)
	}
	return answers, nil
}

// Link links waiting tasks to their dependencies (docs/lifecycle.md, "Dependencies"). Afterwards, the tasks that need not
// wait are due.
func (s *Store) Link(ctx context.Context, tasks ...*tdf.Task) error {
	for len(tasks) > 0 {
		n := batch(len(tasks), bound{linksPerRead, func(i int) int { return tasks[i].Links }})
		values := make([]*redis.SliceCmd, n)
		err := s.pipeline(ctx, func(p redis.Pipeliner) {
			for i, t := range tasks[:n] {
				values[i] = p.HMGet(ctx, s.keys.Task(t.ID), dependencyNames...)
			}
		})
		if err != nil {
			return fmt.Errorf("read dependencies: redis: %w", err)
		}
		var jobs []*linkJob
		for i, t := range tasks[:n] {
			jobs = append(jobs, linkJobOf(t, dependenciesOf(values[i].Val())))
		}
		if err := s.runLinkJobs(ctx, jobs); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

func linkJobOf(t *tdf.Task, all []dependency) *linkJob {
	look := "-"
	if t.EndBefore < tdf.Never {
		look = moment(tdf.Moment{Min: t.EndBefore, Max: t.EndBefore})
	}
	linked := t.Current().Linked // above len(all) only if another program has changed the task
	before := min(linked, len(all))
	return &linkJob{all, before, func(done int, last bool) []any {
		var e encoder
		e.add("link", strconv.FormatInt(t.ID, 10), strconv.Itoa(t.Round), strconv.Itoa(t.Revision), strconv.Itoa(linked+done-before))
		e.flag(last)
		e.add(look)
		return e.args
	}}
}

// AwaitedGroups returns a page of the groups that tasks wait for, from the given rank on. Complete has those of these groups
// that are complete, if some of their dependents do not know it yet. If the page is the last one, next is 0.
func (s *Store) AwaitedGroups(ctx context.Context, from, most int64) (groups, complete []string, next int64, err error) {
	err = s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		groups, err = s.rdb.ZRange(ctx, s.keys.awaitedGroups(), from, from+most-1).Result()
		return err
	})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("read %s: redis: %w", s.keys.awaitedGroups(), err)
	}
	if len(groups) == 0 {
		return nil, nil, 0, nil
	}
	if int64(len(groups)) == most {
		next = from + most
	}
	waiting, err := s.withDependents(ctx, groups)
	if err != nil || len(waiting) == 0 {
		return groups, nil, next, err
	}
	e := s.linkArgs()
	for _, group := range waiting {
		e.add("probe", group)
	}
	answers, err := s.callLink(ctx, e, len(waiting))
	for i, answer := range answers {
		if answer == "+" {
			complete = append(complete, waiting[i])
		}
	}
	return groups, complete, next, err
}

// withDependents returns the groups whose lists of dependents still have entries.
func (s *Store) withDependents(ctx context.Context, groups []string) (waiting []string, err error) {
	exist := make([]*redis.IntCmd, len(groups))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, group := range groups {
			exist[i] = p.Exists(ctx, s.keys.groupDependents(group))
		}
	})
	for i, group := range groups {
		if exist[i].Val() > 0 {
			waiting = append(waiting, group)
		}
	}
	return waiting, err
}

// CompleteGroup updates the dependents of a complete group. The arguments are the results of Unsuccessful. CompleteGroup
// returns false if the group is not complete, if its tasks have moved since Unsuccessful, or if it had time for only some of
// the dependents.
func (s *Store) CompleteGroup(ctx context.Context, group string, archived, others int64) (bool, error) {
	for begun := time.Now(); ; {
		e := s.linkArgs()
		e.add("complete", group, tdf.UnmetGroup(group, archived+others), strconv.FormatInt(others, 10))
		answers, err := s.callLink(ctx, e, 1)
		if err != nil || answers[0] != "~" || time.Since(begun) > linkTime {
			return err == nil && answers[0] == "+", err
		}
	}
}

// Unsuccessful counts the tasks of a complete group that did not succeed. The result archived is their number in one page of
// archived tasks. The result others is their number among all tasks that are not archived. The first page has after = 0. If
// the page is the last one, next is 0.
func (s *Store) Unsuccessful(ctx context.Context, group string, after int64) (archived, others, next int64, err error) {
	counts, err := s.Counts(ctx, group)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, state := range unsuccessful {
		others += counts[state]
	}
	ids, more, err := s.groupPage(ctx, group, tdf.Archived, after)
	if err != nil {
		return 0, 0, 0, err
	}
	stored, err := s.Read(ctx, ids, Want{Fields: Head})
	for _, t := range stored {
		if t.Task != nil && t.Task.Outcome != "" && t.Task.Outcome != string(tdf.Succeeded) {
			archived++
		}
	}
	if more {
		next = ids[len(ids)-1]
	}
	return archived, others, next, err
}
