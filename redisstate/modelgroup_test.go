package redisstate_test

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/stages"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

// closing are the groups that the players close. Only group opens tasks in them.
var closing = []string{"c0", "c1"}

// group opens a task in a group, or closes, extends or decides the group. If the player is alone, it checks whether the ledger
// predicts the answer.
func (p *player) group(ctx context.Context) {
	group := closing[p.rand.IntN(len(closing))]
	mark, tasks, unfinished := p.ledger.markOf(group)
	switch p.rand.IntN(4) {
	case 0:
		d := p.definition()
		d.Group, d.Unique = group, ""
		ids, err := p.s.Open(ctx, "player", d)
		if p.refusedBy(err, mark.CheckOpening()) || p.checkRefused(err, p.hasRoom(1)) {
			return
		}
		p.ledger.opened(ids, []task.Properties{d})
		p.ids = append(p.ids, ids...)
	case 1:
		err := p.s.Groups.CloseGroup(ctx, group)
		switch {
		case tasks == 0:
			p.refusedBy(err, task.ErrGroupEmpty)
		case !p.refusedBy(err, nil) && mark == task.GroupOpen:
			p.ledger.mark(group, task.GroupClosed)
		}
	case 2:
		err := p.s.Groups.ExtendGroup(ctx, group)
		switch {
		case mark == task.GroupDecided:
			p.refusedBy(err, task.ErrGroupDecided)
		case !p.refusedBy(err, nil):
			p.ledger.mark(group, task.GroupOpen)
		}
	default:
		p.decide(ctx, group, mark.CheckDecision(unfinished))
	}
}

// decide decides a group, and opens a task in the same unit.
func (p *player) decide(ctx context.Context, group string, want error) {
	d := p.definition()
	d.Unique = ""
	outcomes, err := p.s.Apply(ctx, "player", redisstate.Unit{Decide: group, Open: []task.Properties{d}})
	p.must(err)
	o := outcomes[0]
	if p.refusedBy(o.Err, want) {
		return
	}
	p.ledger.opened(o.IDs, []task.Properties{d})
	p.ids = append(p.ids, o.IDs...)
	p.ledger.mark(group, task.GroupDecided)
}

// refusedBy reports whether err says that the mark of a group does not allow a call. If the player is alone, the error must be
// the given one, or nil.
func (p *player) refusedBy(err, want error) bool {
	p.t.Helper()
	var refusal *task.GroupError
	refused := errors.As(err, &refusal)
	if p.alone {
		expect.Equal(p.t, refused, want != nil)
		if refused {
			expect.FailsWith(p.t, err, want)
		}
	}
	return refused
}

// markOf returns the mark of a group according to the ledger, the number of its tasks, and whether some of them are not finished.
// A group without tasks has no mark.
func (l *ledger) markOf(group string) (mark task.GroupMark, tasks int, unfinished bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.tasks {
		if e.d.Group != group {
			continue
		}
		if at, _ := e.followMoves(); at.state != task.None {
			tasks++
			unfinished = unfinished || !at.state.Finished()
		}
	}
	if tasks == 0 {
		delete(l.marks, group)
	}
	return l.marks[group], tasks, unfinished
}

func (l *ledger) mark(group string, mark task.GroupMark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[group] = mark
}

// pausable is what the players pause.
var pausable = task.Paused{{Queue: "a"}, {Group: "g1"}, {Group: "c0"}}

// pause pauses or resumes a queue or a group.
func (p *player) pause(ctx context.Context) {
	what := pausable[p.rand.IntN(len(pausable))]
	p.paused = slices.DeleteFunc(p.paused, func(x task.Pausable) bool { return x == what })
	if p.chance(40) {
		_, err := p.s.Limits.Pause(ctx, "player", what)
		p.must(err)
		p.paused = append(p.paused, what)
		return
	}
	_, err := p.s.Limits.Resume(ctx, "player", what)
	p.must(err)
}

// stageRecord returns the record of the stage p/s.
func (p *player) stageRecord(ctx context.Context) task.StageRecord {
	p.t.Helper()
	records, invalid, err := stages.Of(p.s).StageRecords(ctx, []string{"p/s"})
	p.must(errors.Join(err, invalid[0]))
	return records[0]
}

// stage opens tasks of the stage p/s, and changes its record from the one that it has read. If another player has changed the
// record meanwhile, nothing happens.
func (p *player) stage(ctx context.Context) {
	from := p.stageRecord(ctx)
	to := task.StageRecord{Phase: task.StageOpening, Done: from.Done + 1, Digest: "d"}
	u := redisstate.Unit{Stage: &redisstate.StageChange{Stage: "p/s", From: from, To: to}}
	stale := p.chance(10)
	if stale {
		u.Stage.From = task.StageRecord{Phase: task.StageOpened} // the stage never has this record
	}
	for range p.rand.IntN(3) {
		d := p.definition()
		d.Group, d.Unique = "p/s", ""
		u.Open = append(u.Open, d)
	}
	outcomes, err := p.s.Apply(ctx, "player", u)
	p.must(err)
	o := outcomes[0]
	if changed := errors.Is(o.Err, redisstate.ErrRecordChanged); changed || stale {
		expect.True(p.t, changed, "a change of the record", from, "stale", stale, o.Refused)
		if p.alone {
			expect.True(p.t, stale, "a change of the record", from, "stale", stale, o.Refused)
		}
		return
	}
	if p.checkRefused(o.Err, len(u.Open) == 0 || p.hasRoom(len(u.Open))) {
		return
	}
	p.ledger.opened(o.IDs, u.Open)
	p.ids = append(p.ids, o.IDs...)
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	expect.True(p.t, !p.ledger.staged[from.Done], "two players changed the record", from)
	p.ledger.staged[from.Done] = true
}

// checkStage compares the record of the stage p/s with the ledger.
func (p *player) checkStage() {
	p.t.Helper()
	record := p.stageRecord(context.Background())
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	expect.Equal(p.t, record.Done, len(p.ledger.staged), "the record … after … changes")
}

// A roundOf names a round of a task.
type roundOf struct {
	id    int64
	round int
}

// nextUpdate returns a report with the next update of a round, and its number.
func (l *ledger) nextUpdate(of roundOf) (redisstate.LiveReport, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.updates[of] + 1
	return redisstate.LiveReport{Updates: []string{strconv.Itoa(n)}, FirstUpdate: n}, n
}

// updated records that Redis has accepted an update.
func (l *ledger) updated(of roundOf, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.updates[of] = max(l.updates[of], n)
}

// checkUpdates compares the updates of all tasks with the ledger: each round has those that Redis has accepted, in order. It
// leaves out tasks whose outputs may have been removed.
func (p *player) checkUpdates() {
	p.t.Helper()
	tasks, err := p.s.Read(context.Background(), p.ledger.ids(0), redisstate.Want{Fields: redisstate.Whole})
	p.must(err)
	for _, x := range tasks {
		if x.Task == nil || x.Task.KeepOutputs != task.Forever {
			continue
		}
		found, err := p.s.Updates.After(context.Background(), x.ID, updates.Update{}, 1000)
		p.must(err)
		numbers := map[int]int{}
		for _, u := range found {
			if numbers[u.Round]++; u.Number != numbers[u.Round] || u.Line != strconv.Itoa(u.Number) {
				p.t.Fatalf("task %d has the update %+v after %d updates of the round", x.ID, u, numbers[u.Round]-1)
			}
		}
		p.ledger.mu.Lock()
		for round := range x.Task.Round + 1 {
			want := p.ledger.updates[roundOf{x.ID, round}]
			expect.True(p.t, numbers[round] == want, "round", round, "of task", x.ID, "has", numbers[round], "updates, want", want)
		}
		p.ledger.mu.Unlock()
	}
}
