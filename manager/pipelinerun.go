package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A pipelineRun holds the data of one call of Pipeline.Run. Another call can read all of these data from Redis, except
// the pauses after errors.
type pipelineRun struct {
	*run
	pipeline *Pipeline
	stages   []*stageRun
	groups   []string
	records  []task.StageRecord // as of the present round, one for each stage
	invalid  []error
	failed   backoff // the stages that wait for another attempt, by their index
	allDone  bool    // all stages were done, and are checked once more
}

// A stageRun holds the data of one stage in one call of Pipeline.Run.
type stageRun struct {
	index        int
	name, group  string
	start, after StageFunc // nil if there is no function
	each         bool
	next         *stageRun // the stage that the function after opens; nil if it opens none
	opening      *starter  // nil while no function of Start runs
	// whether Redis has refused the last step because a task is not finished, or the group is not closed
	premature bool
	done      bool
	doneWith  [2]task.StageRecord // the records of the stage and of the next stage when it was done
}

// A stageError is an error of one stage. After a pause, Run tries the stage again. Meanwhile, it handles other stages.
type stageError struct{ error }

func (e stageError) Unwrap() error { return e.error }

// turn is the longest time for which one stage opens tasks before Run handles other stages and callbacks.
const turn = time.Second

func (p *Pipeline) newRun(names []string) (*pipelineRun, error) {
	x := &pipelineRun{pipeline: p, failed: backoff{}}
	byName := map[string]*stageRun{}
	var each []string
	for i, name := range names {
		s := &stageRun{
			index: i, name: name, group: task.StageGroup(p.plan.Pipeline, name), start: p.start[name],
			after: p.after[name], each: p.each[name] != nil,
		}
		byName[name] = s
		x.stages, x.groups = append(x.stages, s), append(x.groups, s.group)
		if s.each {
			each = append(each, s.group)
		}
	}
	for _, a := range p.plan.After {
		byName[a.Stage].next = byName[a.Next]
	}
	callback := func(ctx context.Context, t *Finished) error { return x.callEach(ctx, t) }
	var err error
	x.run, err = p.manager.newRun(Callbacks{
		Groups: x.groups, Succeeded: callback, Failed: callback, TimedOut: callback,
		Expired: callback,
	})
	if err != nil {
		return nil, err
	}
	x.run.scope, x.run.stages = each, x
	x.run.handling.own.Pipeline = p.plan.Pipeline
	return x, nil
}

// stop ends the functions of Start.
func (x *pipelineRun) stop() {
	for _, s := range x.stages {
		s.stopOpening()
	}
}

func (x *pipelineRun) callEach(ctx context.Context, t *Finished) error {
	for _, s := range x.stages {
		if s.group == t.Group {
			return x.pipeline.each[s.name](ctx, t)
		}
	}
	// never happens, because scope has only the groups of stages
	return fmt.Errorf("the group %q belongs to no stage", t.Group)
}

// advance does the next action of each stage that does not wait for another attempt. It reports whether all stages are
// done.
func (x *pipelineRun) advance(ctx context.Context) (done bool, err error) {
	if x.records, x.invalid, err = x.in().Stages().StageRecords(ctx, x.groups); err != nil {
		return false, err
	}
	now, err := x.in().Store.Now(ctx)
	if err != nil {
		return false, err
	}
	done = true
	for _, s := range x.stages {
		if s.doneWith != x.recordsOf(s) { // Redis may have come back with older data
			s.done = false
		}
		if !s.done && !x.failed.mustWait(int64(s.index), x.rounds, now) {
			if err := x.advanceStage(ctx, s); err != nil {
				return false, err
			}
		}
		done = done && s.done
	}
	return x.confirm(done), nil
}

// isBusy reports whether a stage opens tasks, or waits for another attempt.
func (x *pipelineRun) isBusy() bool {
	return len(x.failed) > 0 || slices.ContainsFunc(x.stages, func(s *stageRun) bool { return s.opening != nil })
}

// confirm reports whether all stages are done, even after another check. A user may have retried tasks of a stage that
// was done.
func (x *pipelineRun) confirm(done bool) bool {
	if !done || x.allDone {
		x.allDone = false
		return done
	}
	x.allDone, x.again = true, true
	for _, s := range x.stages {
		s.done = false
	}
	return false
}

// recordsOf returns the records on which a decision about the stage depends.
func (x *pipelineRun) recordsOf(s *stageRun) (records [2]task.StageRecord) {
	records[0] = x.records[s.index]
	if s.next != nil {
		records[1] = x.records[s.next.index]
	}
	return records
}

func (x *pipelineRun) advanceStage(ctx context.Context, s *stageRun) error {
	err := x.act(ctx, s)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var failure stageError
	switch {
	case err == nil:
		s.premature = false
		delete(x.failed, int64(s.index))
		return nil
	case errors.Is(err, redisstate.ErrRecordChanged): // another manager was faster
		x.again = true
		return nil
	case isPremature(err) && !s.premature: // a user has retried a task
		s.premature, x.again = true, true
		return nil
	case errors.Is(err, redisstate.ErrNoRoom):
		return x.waitForRoom(ctx, s)
	case errors.As(err, &failure):
		return x.retryLater(ctx, s, failure)
	}
	return err
}

// isPremature reports whether a step was refused because a task of the group is not finished any more.
func isPremature(err error) bool {
	return errors.Is(err, tdf.ErrGroupUnfinished) || errors.Is(err, tdf.ErrGroupNotClosed)
}

func (x *pipelineRun) waitForRoom(ctx context.Context, s *stageRun) error {
	now, err := x.in().Store.Now(ctx)
	x.failed[int64(s.index)] = &retry{after: now.Add(task.For(redisstate.RoomPause)), round: x.rounds}
	return err
}

func (x *pipelineRun) retryLater(ctx context.Context, s *stageRun, failure stageError) error {
	s.stopOpening()
	now, err := x.in().Store.Now(ctx)
	tried := x.failed.addFailure(int64(s.index), x.rounds, now)
	x.in().Log.Error("stage failed; it is tried again after a pause", "pipeline", x.pipeline.plan.Pipeline, "stage",
		s.name, "pause_seconds", float64(tried.after.Sub(now)), "error", failure.error)
	if x.in().StageFailed != nil {
		what := fmt.Sprintf("stage %q of pipeline %q", s.name, x.pipeline.plan.Pipeline)
		x.in().StageFailed(what, tried.attempts, failure.error)
	}
	return err
}

// act does the next action of a stage.
func (x *pipelineRun) act(ctx context.Context, s *stageRun) error {
	status, err := x.status(ctx, s)
	if err != nil {
		return err
	}
	action := status.Action()
	x.again = x.again || action != task.StageWaits && action != task.StageArchive && action != task.StageDone
	if action != task.StageStart { // another manager has opened the rest
		s.stopOpening()
	}
	switch action {
	case task.StageStart:
		return x.openFirst(ctx, s)
	case task.StageFill:
		return x.openStored(ctx, s)
	case task.StageClose:
		return x.closeStage(ctx, s)
	case task.StageAfter:
		return x.openNext(ctx, s, status.Counts.Total() == 0)
	case task.StageArchive:
		return x.archiveStage(ctx, s)
	case task.StageDone:
		s.done, s.doneWith = true, x.recordsOf(s)
	}
	return nil
}

// status reads the status of a stage. It reads the mark before the counts: if the group is closed, no task can be
// opened between the two reads.
func (x *pipelineRun) status(ctx context.Context, s *stageRun) (task.StageStatus, error) {
	status := task.StageStatus{
		Record: x.records[s.index], First: s.start != nil, HasAfter: s.after != nil,
		HasEach: s.each,
	}
	invalid := x.invalid[s.index]
	if s.next != nil {
		status.Next = &x.records[s.next.index]
		invalid = cmp.Or(invalid, x.invalid[s.next.index])
	}
	switch status.Record.Phase {
	case task.StageOpening:
		if s.start == nil && invalid == nil {
			invalid = errors.New(
				"its record says that it is the first stage; run the pipeline that began it, or use another name")
		}
	case task.StageOpened, task.StageDecided:
		group, err := x.GroupStatus(ctx, s.group)
		if err != nil {
			return status, err
		}
		status.Counts = group.Counts
		status.Mark = markOf(group)
	}
	if invalid != nil {
		return status, stageError{invalid}
	}
	return status, nil
}

func markOf(s GroupStatus) task.GroupMark {
	switch {
	case s.Decided:
		return task.GroupDecided
	case s.Closed:
		return task.GroupClosed
	}
	return task.GroupOpen
}

// closeStage closes the group of a stage. If its tasks were removed meanwhile, the stage is complete without them.
func (x *pipelineRun) closeStage(ctx context.Context, s *stageRun) error {
	if err := x.in().Store.Groups.CloseGroup(ctx, s.group); err != nil && !errors.Is(err, tdf.ErrGroupEmpty) {
		return err
	}
	return nil
}

// archiveStage archives up to 1,000 finished tasks of each state. Other tasks are archived in the next rounds. If
// another manager archives the tasks, this one does nothing more until its next round.
func (x *pipelineRun) archiveStage(ctx context.Context, s *stageRun) error {
	for _, state := range listing.Settled {
		ids, err := x.in().Store.List(ctx, state, s.group, 0, idsPerPage)
		if err != nil {
			return err
		}
		archived, err := x.Archive(ctx, ByIDs(ids...)...)
		if err != nil {
			return err
		}
		x.again = x.again || archived.Done > 0
	}
	return nil
}

// apply carries out a unit. The error says why Redis has refused it.
func (x *pipelineRun) apply(ctx context.Context, u redisstate.Unit) error {
	outcomes, err := x.in().Store.Apply(ctx, x.in().Name, u)
	if errors.Is(err, conn.ErrFull) {
		return stageError{err}
	}
	if err != nil {
		return err
	}
	o := outcomes[0]
	switch err := o.RefusedWith(redisstate.ErrRecordChanged); err {
	case nil, redisstate.ErrRecordChanged:
		return err
	default:
		return stageError{err}
	}
}

// openChunk opens tasks of a stage and changes its record, in one step. Redis refuses the step if another manager has
// changed the record.
func (x *pipelineRun) openChunk(ctx context.Context, s *stageRun, u redisstate.Unit, to task.StageRecord) error {
	u.Stage.Stage, u.Stage.From, u.Stage.To = s.group, x.records[s.index], to
	var err error
	if u.Open, err = x.in().Scatter(ctx, u.Open); err != nil {
		return err
	}
	if err := x.apply(ctx, u); err != nil {
		return err
	}
	x.records[s.index] = to
	return nil
}
