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

// A plan is what an installation will do, known and possible before it does anything.
type plan struct {
	journal
	moves []string // of the tree to ./$program/; all but run.sh
	moved string   // the last of them, with a slash: what is below it comes along
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

// place plans for one entry of the tree. A directory that is there already keeps what it holds
// and gets the rest; anything else that is there already is not ours to replace.
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
	there, err := os.Lstat(filepath.Join(j.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.moves, p.moved = append(p.moves, name), name+"/"
		p.Files = append(p.Files, name)
		return nil
	case err != nil:
		return err
	case there.IsDir() && d.IsDir():
		return nil
	}
	return fmt.Errorf("./%s/%s is there already, and the source brings its own; move it away, or give the program another name", j.program, name)
}

// addMade adds what setup.sh made, but for what it put where something was before. What it made
// unreadable is not looked into.
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
