package fetch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// install moves the staged tree into ./$program/: the journal, then everything but run.sh, then
// setup.sh has its turn, the record, and at last run.sh. What fails is undone.
func (j *job) install(ctx context.Context, sum string) (err error) {
	plan, err := j.plan(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			j.rollBack(&plan.journal)
		}
	}()
	if err := j.putJSON(journalName, plan.journal); err != nil {
		return err
	}
	for _, name := range plan.moves {
		if err := os.Rename(filepath.Join(j.staged(stagedTree), name), filepath.Join(j.dir, name)); err != nil {
			return err
		}
	}
	if slices.Contains(plan.moves, setupScript) {
		if err := j.setup(ctx); err != nil {
			return failed(ctx, j.src, StepSetup, err)
		}
		plan.addMade(j.dir)
	}
	return j.complete(ctx, sum, plan.journal)
}

// complete makes it a program. Before that, all of it is on the disk: a machine that loses its
// power must not come up with a run.sh whose data are missing.
func (j *job) complete(ctx context.Context, sum string, o journal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.putJSON(recordName, record{Source: j.src.String(), ID: sourceID(j.src), SHA256: sum}); err != nil {
		return err
	}
	o.Done, o.Existed, o.Before = true, true, nil
	if err := j.putJSON(journalName, o); err != nil {
		return err
	}
	if err := flush(j.dir); err != nil {
		return err
	}
	return os.Rename(filepath.Join(j.staged(stagedTree), runScript), filepath.Join(j.dir, runScript))
}

func (j *job) rollBack(o *journal) {
	if err := o.undo(j.dir); err != nil {
		j.Log.Warn("a failed fetch could not be undone; the next one tries again", "program", j.program, "err", err)
	}
}
