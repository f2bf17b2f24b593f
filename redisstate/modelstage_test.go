package redisstate

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// stageRecord returns the record of the stage p/s.
func (p *player) stageRecord(ctx context.Context) tdf.StageRecord {
	p.t.Helper()
	records, invalid, err := p.s.StageRecords(ctx, []string{"p/s"})
	p.must(errors.Join(err, invalid[0]))
	return records[0]
}

// stage opens tasks of the stage p/s, and changes its record from the one that it has read. If another player has changed the
// record meanwhile, nothing happens.
func (p *player) stage(ctx context.Context) {
	from := p.stageRecord(ctx)
	to := tdf.StageRecord{Phase: tdf.StageOpening, Done: from.Done + 1, Digest: "d"}
	u := Unit{Stage: &StageChange{Stage: "p/s", From: from, To: to}}
	stale := p.chance(10)
	if stale {
		u.Stage.From = tdf.StageRecord{Phase: tdf.StageOpened} // the stage never has this record
	}
	for range p.rand.IntN(3) {
		d := p.definition()
		d.Group, d.Unique = "p/s", ""
		u.Open = append(u.Open, d)
	}
	outcomes, err := p.s.Apply(ctx, "player", u)
	p.must(err)
	o := outcomes[0]
	if changed := errors.Is(o.Err, ErrStageChanged); changed || stale {
		expect.True(p.t, changed && (!p.alone || stale), "a change of the record", from, "stale", stale, o.Refused)
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
