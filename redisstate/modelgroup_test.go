package redisstate

import (
	"context"
	"errors"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
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
		p.ledger.opened(ids, []tdf.Properties{d})
		p.ids = append(p.ids, ids...)
	case 1:
		err := p.s.CloseGroup(ctx, group)
		switch {
		case tasks == 0:
			p.refusedBy(err, tdf.ErrGroupEmpty)
		case !p.refusedBy(err, nil) && mark == tdf.GroupOpen:
			p.ledger.mark(group, tdf.GroupClosed)
		}
	case 2:
		err := p.s.ExtendGroup(ctx, group)
		switch {
		case mark == tdf.GroupDecided:
			p.refusedBy(err, tdf.ErrGroupDecided)
		case !p.refusedBy(err, nil):
			p.ledger.mark(group, tdf.GroupOpen)
		}
	default:
		p.decide(ctx, group, mark.CheckDecision(unfinished))
	}
}

// decide decides a group, and opens a task in the same unit.
func (p *player) decide(ctx context.Context, group string, want error) {
	d := p.definition()
	d.Unique = ""
	outcomes, err := p.s.Apply(ctx, "player", Unit{Decide: group, Open: []tdf.Properties{d}})
	p.must(err)
	o := outcomes[0]
	if p.refusedBy(o.Err, want) {
		return
	}
	p.ledger.opened(o.IDs, []tdf.Properties{d})
	p.ids = append(p.ids, o.IDs...)
	p.ledger.mark(group, tdf.GroupDecided)
}

// refusedBy reports whether err says that the mark of a group does not allow a call. If the player is alone, the error must be
// the given one, or nil.
func (p *player) refusedBy(err, want error) bool {
	p.t.Helper()
	var refusal *tdf.GroupError
	refused := errors.As(err, &refusal)
	expect.True(p.t, !p.alone || refused == (want != nil) && (!refused || errors.Is(err, want)), "a call for a group", err, "want", want)
	return refused
}

// markOf returns the mark of a group according to the ledger, the number of its tasks, and whether some of them are not finished.
// A group without tasks has no mark.
func (l *ledger) markOf(group string) (mark tdf.GroupMark, tasks int, unfinished bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.tasks {
		if e.d.Group != group {
			continue
		}
		if at, _ := e.followMoves(); at.state != tdf.None {
			tasks++
			unfinished = unfinished || !at.state.Finished()
		}
	}
	if tasks == 0 {
		delete(l.marks, group)
	}
	return l.marks[group], tasks, unfinished
}

func (l *ledger) mark(group string, mark tdf.GroupMark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[group] = mark
}

// pausable is what the players pause.
var pausable = tdf.Paused{{Queue: "a"}, {Group: "g1"}, {Group: "c0"}}

// pause pauses or resumes a queue or a group.
func (p *player) pause(ctx context.Context) {
	what := pausable[p.rand.IntN(len(pausable))]
	p.paused = slices.DeleteFunc(p.paused, func(x tdf.Pausable) bool { return x == what })
	if p.chance(40) {
		_, err := p.s.Pause(ctx, "player", what)
		p.must(err)
		p.paused = append(p.paused, what)
		return
	}
	_, err := p.s.Resume(ctx, "player", what)
	p.must(err)
}
