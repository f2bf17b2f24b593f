package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Copy is a copy of a program's directory, in which one slot of a worker runs its rounds
// (docs/decisions/copies.md). It has the files that came from the source or from setup.sh, or all files of a
// directory made by hand. A Copy is not safe for concurrent use.
//
// A copy is installed beside the original as a program is that was fetched from it, so the rules of doc.go hold.
type Copy struct {
	Dir string

	job    *job
	with   CopyOptions
	origin *tree // what the copy depends on: the original's files if it was made by hand, else its journal
	files  *tree
}

// CopyOptions says how a copy is made.
type CopyOptions struct {
	Number   int   // the copy of p is p~Number
	MaxBytes int64 // how many bytes may be copied, where the file system cannot clone

	// Busy reports whether another worker runs rounds in the original. A round that has changed the original cannot
	// be undone then.
	Busy func() bool
}

// copySource is the source in the record of a copy, so that no task can run the copy as a program of this name.
const copySource = "a copy of ./"

// copyTries is how often files are copied that change meanwhile.
const copyTries = 3

// Copy makes a copy of a program for one slot. If a round has changed files of the original, which was fetched, Copy
// first fetches the original again. The errors are those of [Fetcher.Fetch].
func (f *Fetcher) Copy(ctx context.Context, program, source string, with CopyOptions) (*Copy, error) {
	original, err := f.job(program, source)
	if err != nil {
		return nil, err
	}
	j := *original
	j.at(j.program + "~" + strconv.Itoa(with.Number))
	j.original = original.program
	c := &Copy{Dir: j.dir, job: &j, with: with}
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, timeoutError{j.Timeout})
	defer cancel()
	return c, failed(ctx, j.src, StepCopy, c.makeFrom(ctx, original))
}

// makeFrom makes the copy. It holds the locks of both directories.
func (c *Copy) makeFrom(ctx context.Context, original *job) error {
	unlock, err := original.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := original.intact(ctx, c.with.Busy)
	if err != nil {
		return err
	}
	unlockCopy, err := c.job.lock(ctx)
	if err != nil {
		return err
	}
	defer unlockCopy()
	if err := c.clear(); err != nil {
		return err
	}
	if err := c.job.openStage(); err != nil {
		return err
	}
	defer c.job.closeStage()
	return c.install(ctx, p)
}

// clear removes an earlier copy, but not the files that rounds have made there. If the copy is damaged, or belongs to
// the user of another slot, clear removes it with everything in it.
func (c *Copy) clear() error {
	info, err := os.Lstat(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old journal
	err = readJSON(filepath.Join(c.Dir, journalName), &old)
	switch {
	case errors.Is(err, fs.ErrNotExist) && info.IsDir() && !c.job.hasScript() && c.job.User.owns(info):
		return nil // earlier rounds have left files here
	case err == nil && old.CopyOf != c.job.original, errors.Is(err, fs.ErrNotExist), !info.IsDir():
		text := "./%s is in the way of a copy of ./%s; remove or rename it"
		return localError{fmt.Errorf(text, c.job.program, c.job.original)}
	case err == nil && c.job.User.owns(info) && old.undo(c.Dir, "") == nil:
		return nil
	}
	working, err := os.OpenRoot(c.job.Dir)
	if err != nil {
		return err
	}
	defer working.Close()
	return working.RemoveAll(c.job.program)
}

// install copies the original into the staging directory, and moves it into place.
func (c *Copy) install(ctx context.Context, p Program) error {
	names, err := c.names(p.Dir)
	if err != nil {
		return err
	}
	if c.origin, err = newTree(p.Dir, append([]string{"."}, names...), c.originGrows); err != nil {
		return err
	}
	if names, err = c.stageTree(ctx, names); err != nil {
		return err
	}
	if hasJournal(p.Dir) {
		if changed, err := changedSinceFetch(p.Dir); changed != "" || err != nil {
			return cmp.Or(err, errorInUse(c.job.original, changed))
		}
		if c.origin, err = newTree(p.Dir, []string{journalName}, everywhere); err != nil {
			return err
		}
	}
	if err := c.makeWay(names); err != nil {
		return err
	}
	if err := c.job.install(ctx, p.SHA256); err != nil {
		return err
	}
	if err := c.job.User.chown(c.Dir); err != nil {
		return err
	}
	c.files, err = newTree(c.Dir, names, everywhere)
	return err
}

// makeWay removes what rounds have left in the places of staged files. If the original was made by hand, a round there
// may have made files of the same names.
func (c *Copy) makeWay(names []string) error {
	into, err := os.OpenRoot(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer into.Close()
	for _, name := range names {
		there, err := into.Lstat(name)
		if err != nil || name == runScript {
			continue // nothing is there
		}
		staged, err := os.Lstat(filepath.Join(c.job.staged(stagedTree), name))
		if err == nil && there.IsDir() && staged.IsDir() {
			continue
		}
		if err := into.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// originGrows reports whether the worker adds outputs to a directory of the original. In other directories, a new
// file belongs to the program.
func (c *Copy) originGrows(dir string) bool { return dir == c.job.Outputs }

// names returns the names of the files to copy.
func (c *Copy) names(dir string) ([]string, error) {
	o, err := journalOf(dir)
	if err != nil {
		return nil, err
	}
	if o != nil {
		return withParents(append([]string{runScript}, o.Files...)), nil
	}
	var names []string
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return names, fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".", strings.HasPrefix(name, reservedPrefix):
			return nil
		}
		if names = append(names, name); len(names) > c.job.Limits.Entries {
			return tooLarge(c.job.Limits.tooManyEntries())
		}
		if d.IsDir() && name == c.job.Outputs {
			return fs.SkipDir
		}
		return nil
	})
}

// stageTree copies the named files into the staged tree. It returns the names of those that it has copied.
func (c *Copy) stageTree(ctx context.Context, names []string) (copied []string, err error) {
	tree := c.job.staged(stagedTree)
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, err
	}
	return c.copyTree(ctx, tree, names)
}

// copyTree copies the named files into a directory. It returns the names of those that it has copied.
func (c *Copy) copyTree(ctx context.Context, tree string, names []string) (copied []string, err error) {
	k, err := c.copier(ctx, tree)
	if err != nil {
		return nil, err
	}
	defer k.end()
	stamps := make(map[string]stamp, len(names))
	for i, name := range c.origin.names {
		stamps[name] = c.origin.stamps[i]
	}
	for _, name := range names {
		if _, ok := stamps[name]; !ok {
			continue
		}
		ok, err := k.copy(name, stamps[name])
		if err != nil {
			return nil, err
		}
		if ok {
			copied = append(copied, name)
		}
	}
	for _, name := range slices.Backward(copied) {
		if stamps[name].kind() == unix.S_IFDIR {
			if err := k.finishDirectory(name); err != nil {
				return nil, err
			}
		}
	}
	if k.skipped != "" {
		c.job.Log.Info("sockets, pipes and devices are not copied", "program", c.job.original, "first", k.skipped)
	}
	return copied, c.copyChanged(ctx, tree)
}

// copyChanged copies the files again that have changed while they were copied.
func (c *Copy) copyChanged(ctx context.Context, to string) error {
	for range copyTries {
		changed, err := c.origin.changed(len(c.origin.names))
		if len(changed) == 0 || err != nil {
			return err
		}
		err = c.replace(ctx, to, c.origin, changed)
		switch {
		case err == errDirectoryChanged:
			return nil // the next check finds out, too
		case err != nil:
			return err
		}
	}
	return nil // a file changes all the time; the next check finds out and copies it again
}

func (c *Copy) copier(ctx context.Context, to string) (*copier, error) {
	from, err := openDirectory(filepath.Join(c.job.Dir, c.job.original))
	if err != nil {
		return nil, err
	}
	into, err := openDirectory(to)
	if err != nil {
		from.Close()
		return nil, err
	}
	return &copier{ctx: ctx, from: from, to: into, owner: c.job.User, left: c.with.MaxBytes}, nil
}

var errDirectoryChanged = errors.New("a directory has changed")

// replace copies single files again. Their stamps in the tree t, which is the copy or the original, become those of
// now.
func (c *Copy) replace(ctx context.Context, to string, t *tree, changed []int) error {
	k, err := c.copier(ctx, to)
	if err != nil {
		return err
	}
	defer k.end()
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, i := range changed {
		name := t.names[i]
		s, err := stampAt(int(k.from.Fd()), name)
		if err != nil {
			return err
		}
		if s.kind() != unix.S_IFREG && s.kind() != unix.S_IFLNK {
			return errDirectoryChanged
		}
		if err := root.Remove(name); err != nil && !gone(err) {
			return err
		}
		if _, err := k.copy(name, s); err != nil {
			return err
		}
		if t == c.origin {
			t.stamps[i] = s
		} else if t.stamps[i], err = stampAt(int(k.to.Fd()), name); err != nil {
			return err
		}
	}
	return nil
}

// Renew makes the copy as the original is, before a round runs there. It returns the names of up to one file that a
// round has changed. If fresh is false, the program must be copied anew ([Fetcher.Copy]): its original has changed,
// or the copy is damaged or is being removed.
func (c *Copy) Renew(ctx context.Context) (changed string, fresh bool, err error) {
	of, err := c.origin.check(fewOfOrigin)
	if err != nil || len(of) > 0 || !markUsed(c.Dir) {
		return "", false, nil
	}
	own, err := c.files.check(fewOfCopy)
	if err != nil {
		return "", false, nil
	}
	if len(own) == 0 {
		return "", true, nil
	}
	// Those that were not checked may have changed, too.
	if own, err = c.files.changed(len(c.files.names)); err != nil {
		return "", false, nil
	}
	changed = c.files.names[own[0]]
	err = c.replace(ctx, c.Dir, c.files, own)
	if ctx.Err() != nil {
		return changed, false, context.Cause(ctx)
	}
	return changed, err == nil, nil
}

// copiesOf returns the names of the copies of a program.
func copiesOf(dir, program string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), program+"~") {
			continue
		}
		var o journal
		if readJSON(filepath.Join(dir, e.Name(), journalName), &o) == nil && o.CopyOf == program {
			names = append(names, e.Name())
		}
	}
	return names
}
