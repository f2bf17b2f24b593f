package redisstate

import (
	"context"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A roundOf names a round of a task.
type roundOf struct {
	id    int64
	round int
}

// nextUpdate returns a report with the next update of a round, and its number.
func (l *ledger) nextUpdate(of roundOf) (LiveReport, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.updates[of] + 1
	return LiveReport{Updates: []string{strconv.Itoa(n)}, FirstUpdate: n}, n
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
	tasks, err := p.s.Read(context.Background(), p.ledger.ids(0), Want{Fields: Whole})
	p.must(err)
	for _, x := range tasks {
		if x.Task == nil || x.Task.KeepOutputs != tdf.Forever {
			continue
		}
		found, err := p.s.Updates(context.Background(), x.ID, Update{}, 1000)
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
