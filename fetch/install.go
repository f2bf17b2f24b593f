package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// install moves the staged tree into ./$program/. It writes the journal, moves all files except run.sh, runs setup.sh,
// writes the record, and moves run.sh. If a step fails, install undoes all steps.
func (j *job) install(ctx context.Context, sum string) (err error) {
	plan, err := j.plan(ctx)
	if err != nil {
		return err
	}
	if err := os.Mkdir(j.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	defer func() {
		if err != nil {
			j.rollBack(&plan.journal)
		}
	}()
	into, err := openProgram(j.Dir, j.program)
	if err != nil {
		return err
	}
	defer into.Close()
	plan.CopyOf = j.original
	if err := j.putJSON(into, journalName, plan.journal); err != nil {
		return err
	}
	for _, name := range plan.moves {
		if err := j.move(into, stagedTree+"/"+name, name); err != nil {
			return err
		}
	}
	if slices.Contains(plan.moves, setupScript) && j.original == "" {
		if err := j.setup(ctx); err != nil {
			return failed(ctx, j.src, StepSetup, err)
		}
		plan.addMade(j.dir)
	}
	return j.complete(ctx, into, sum, plan.journal)
}

// move renames a staged file into the program's directory. A running program may have replaced one of its directories
// by a link. Therefore move follows no link that leads out of the program's directory.
func (j *job) move(into *os.Root, staged, name string) error {
	from, err := os.Open(filepath.Dir(j.staged(staged)))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := into.OpenFile(path.Dir(name), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	err = unix.Renameat(int(from.Fd()), path.Base(staged), int(to.Fd()), path.Base(name))
	if err != nil {
		return &os.PathError{Op: "move into place", Path: name, Err: err}
	}
	return nil
}

// complete completes the program's directory: it writes the record and moves run.sh into place. Before that, it flushes
// all other files to disk. Without this flush, run.sh could exist after a power failure, although other files are
// missing. A copy needs none: each process makes its own.
func (j *job) complete(ctx context.Context, into *os.Root, sum string, o journal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.putJSON(into, recordName, j.newRecord(sum)); err != nil {
		return err
	}
	o.Done, o.Existed, o.Before = true, true, nil
	if j.original == "" {
		var err error
		if o.Saved, err = j.save(o.Files); err != nil {
			return err
		}
	}
	if err := j.putJSON(into, journalName, o); err != nil {
		return err
	}
	if j.original == "" {
		if err := flush(j.dir); err != nil {
			return err
		}
	}
	return j.move(into, stagedTree+"/"+runScript, runScript)
}

func (j *job) rollBack(o *journal) {
	if err := o.undo(j.dir, j.Outputs); err != nil {
		j.Log.Warn("fetch not undone, the next fetch tries again", "program", j.program, "err", err)
	}
}
