package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A plan lists the moves of an installation. If the program's directory already contains one of the files to move,
// [job.plan] returns an error, before any file is moved.
type plan struct {
	journal
	moves []string // paths to move from the staged tree to ./$program/, without run.sh
	moved string   // the last path in moves, followed by a slash; the move of a directory includes all its files
}

func (j *job) plan(ctx context.Context) (*plan, error) {
	var p plan
	before, err := topLevel(j.dir)
	switch {
	case err == nil:
		p.Existed, p.Before = true, before
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	tree := j.staged(stagedTree)
	return &p, filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == tree {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return j.place(&p, strings.TrimPrefix(path, tree+"/"), d)
	})
}

// place plans the move of one entry. If the entry is a directory that exists already, its files are added to that
// directory. If the entry is a file that exists already, place returns an error.
func (j *job) place(p *plan, name string, d fs.DirEntry) error {
	switch {
	case name == runScript:
		return nil
	case strings.HasPrefix(name, reservedPrefix):
		return fmt.Errorf("entry %q: names that begin with %s are reserved", name, reservedPrefix)
	case p.moved != "" && strings.HasPrefix(name, p.moved):
		p.Files = append(p.Files, name)
		return nil
	}
	existing, err := os.Lstat(filepath.Join(j.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.moves, p.moved = append(p.moves, name), name+"/"
		p.Files = append(p.Files, name)
		return nil
	case err != nil:
		return err
	case existing.IsDir() && d.IsDir():
		return nil
	}
	return fmt.Errorf("./%s/%s exists already, and the source contains it, too; move it away, or give the program "+
		"another name", j.program, name)
}

// addMade extends Files by the files that setup.sh created. It skips unreadable directories, and directories that
// existed before the fetch.
func (p *plan) addMade(dir string) {
	known := make(map[string]bool, len(p.Files))
	for _, name := range p.Files {
		known[name] = true
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return nil
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case slices.Contains(p.Before, name), strings.HasPrefix(name, reservedPrefix):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !known[name]:
			p.Files = append(p.Files, name)
		}
		return nil
	})
}
