package redisstate

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

//go:embed link.lua
var linkSource string

var linkScript = newFreeingScript(prelude + places + opening + linkSource)

const (
	linksPerCall   = 500  // dependencies that one call links or releases, and dependents that it tells; the limit keeps the call short
	linksPerRead   = 5000 // dependencies that are read at once
	endingsPerRead = 200
)

// A dependency is a task or a group that a task waits for, in the notation of link.lua.
type dependency struct{ kind, name string }

func (d dependency) isGroup() bool { return strings.HasPrefix(d.kind, "group") }

var dependencyNames = []string{tdf.FieldAfter, tdf.FieldAfterAny, tdf.FieldAfterGroup, tdf.FieldAfterGroupAny}

// dependenciesOf returns the dependencies in the values of dependencyNames, always in the same order.
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

// runLinkJobs carries out operations. The answer of an operation is '+' if it is complete, '~' if something remains, and '-' if it is
// no longer possible.
func (s *Store) runLinkJobs(ctx context.Context, jobs []*linkJob) error {
	for len(jobs) > 0 {
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

// Link links waiting tasks to their dependencies (docs/lifecycle.md, "Dependencies"). The tasks that need not wait are due
// afterwards.
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
	return &linkJob{all, min(t.Current().Linked, len(all)), func(done int, last bool) []any {
		var e encoder
		e.add("link", strconv.FormatInt(t.ID, 10), strconv.Itoa(t.Round), strconv.Itoa(done))
		e.flag(last)
		e.add(look)
		return e.args
	}}
}

// HandleEndings tells waiting tasks that their dependencies have ended, and releases the dependencies of tasks that have ended. It
// handles the oldest endings, up to a limit, and returns their number.
func (s *Store) HandleEndings(ctx context.Context) (int, error) {
	var members []string
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		members, err = s.rdb.ZRange(ctx, s.keys.ended(), 0, endingsPerRead-1).Result()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read %s: redis: %w", s.keys.ended(), err)
	}
	if len(members) == 0 {
		return 0, nil
	}
	endings := make([]ending, len(members))
	values := make([]*redis.SliceCmd, len(members))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, member := range members {
			endings[i] = parseEnding(member)
			names := append(endings[i].fields(tdf.RoundLinked, tdf.RoundReleased), dependencyNames...)
			values[i] = p.HMGet(ctx, s.keys.Task(endings[i].id), names...)
		}
	})
	if err != nil {
		return 0, fmt.Errorf("read ended tasks: redis: %w", err)
	}
	var jobs []*linkJob
	for i, e := range endings {
		if e.state == tdf.None {
			err := s.bestEffort(ctx, func(p redis.Pipeliner) { p.ZRem(ctx, s.keys.ended(), members[i]) })
			if err != nil {
				return 0, err
			}
			continue
		}
		jobs = append(jobs, e.job(values[i].Val()))
	}
	return len(members), s.runLinkJobs(ctx, jobs)
}

// An ending is the end of a task: the state in which a round has ended.
type ending struct {
	id    int64
	round int
	state tdf.State
}

// parseEnding reads 'id:round:state'. The state of any other text is None.
func parseEnding(member string) (e ending) {
	parts := strings.SplitN(member, ":", 3)
	if len(parts) != 3 {
		return e
	}
	id, errID := strconv.ParseInt(parts[0], 10, 64)
	round, errRound := strconv.Atoi(parts[1])
	state := tdf.State(parts[2])
	if errID != nil || errRound != nil || id < 1 || round < 0 || !state.Settled() ||
		member != fmt.Sprintf("%d:%d:%s", id, round, state) {
		return e
	}
	return ending{id, round, state}
}

func (e ending) fields(names ...string) []string { return roundFields(e.round, names) }

// job returns the operation that handles the ending. The values are the numbers of the linked and of the released dependencies, and
// the values of dependencyNames.
func (e ending) job(values []any) *linkJob {
	linked, released := 0, 0
	var all []dependency
	if len(values) > 2 {
		linked, released = tdf.SoundCount(text(values[0])), tdf.SoundCount(text(values[1]))
		all = dependenciesOf(values[2:])
	}
	all = all[:min(linked, len(all))]
	if released > len(all) {
		all = nil // all of them are released
	}
	return &linkJob{all, min(released, len(all)), func(done int, last bool) []any {
		var args encoder
		args.add("end", strconv.FormatInt(e.id, 10), strconv.Itoa(e.round), string(e.state), tdf.Unmet(e.id, e.state), strconv.Itoa(done))
		args.flag(last)
		return args.args
	}}
}

// AwaitedGroups returns a page of the groups that tasks wait for, from the given rank on. If some of these groups are complete, and
// tasks must be told so, it also returns these groups. At the end of the last page, next is 0.
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

// withDependents returns the groups with tasks that must still be told that the group is complete.
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

// CompleteGroup tells the tasks that wait for a group that the group is complete. It returns false if the group is not complete.
// The argument is the number of tasks of the group that did not succeed.
func (s *Store) CompleteGroup(ctx context.Context, group string, unsuccessful int64) (bool, error) {
	for {
		e := s.linkArgs()
		e.add("complete", group, tdf.UnmetGroup(group, unsuccessful))
		answers, err := s.callLink(ctx, e, 1)
		if err != nil || answers[0] != "~" {
			return err == nil && answers[0] == "+", err
		}
	}
}

// Unsuccessful counts the finished tasks of a group that did not succeed, page by page. It begins with after = 0. In the first page,
// it counts the tasks that are not archived, too. At the end, next is 0.
func (s *Store) Unsuccessful(ctx context.Context, group string, after int64) (n, next int64, err error) {
	if after == 0 {
		counts, err := s.Counts(ctx, group)
		if err != nil {
			return 0, 0, err
		}
		n = counts[tdf.Failed] + counts[tdf.TimedOut] + counts[tdf.Expired]
	}
	ids, more, err := s.groupPage(ctx, group, tdf.Archived, after)
	if err != nil {
		return 0, 0, err
	}
	stored, err := s.Read(ctx, ids, Want{Fields: Head})
	for _, t := range stored {
		if t.Task != nil && t.Task.Outcome != "" && t.Task.Outcome != string(tdf.Succeeded) {
			n++
		}
	}
	if more {
		next = ids[len(ids)-1]
	}
	return n, next, err
}
