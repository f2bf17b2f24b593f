package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// fetch brings the files of a task that succeeded into the current directory.
func (c *campaign) fetch(ctx context.Context, t *manager.Task) error {
	r := t.LastRun()
	if len(c.base.Fetch) == 0 || r == nil {
		return nil
	}
	if r.Files != nil && r.Files.Kept != "" {
		c.printer.mu.Lock()
		defer c.printer.mu.Unlock()
		c.here.keepFiles()
		c.printer.missing("--fetch: files of task %d were not brought back: %s", t.ID, r.Files.Kept)
		return nil
	}
	packed, err := c.m.Files(ctx, t.ID, r.Number)
	switch {
	case err != nil:
	case packed == "":
		err = c.fetchBlobs(ctx, t)
	default:
		err = unpack(c.dir, packed, t.Fetch)
	}
	if err != nil {
		return fmt.Errorf("--fetch: files of task %d: %w", t.ID, err)
	}
	return nil
}

// fetchBlobs brings files that are blobs.
func (c *campaign) fetchBlobs(ctx context.Context, t *manager.Task) error {
	stored, err := managing.Of(c.m.Manager).Store.Read(ctx, []int64{t.ID}, redisstate.Want{Fields: redisstate.Blobs})
	if err != nil || len(stored) == 0 || stored[0].Task == nil {
		return err
	}
	var names []string
	files := map[string]task.Blob{}
	for _, b := range stored[0].Task.Made {
		if b.Path != "" {
			names, files[b.Path] = append(names, b.Path), b
		}
	}
	if len(names) == 0 {
		return errors.New("it has brought back no files; its worker may be of a version that does not know --fetch")
	}
	err = bundle.CheckNames(t.Fetch, names)
	if err != nil {
		return err
	}
	from, err := c.openBlobs(ctx)
	if err != nil {
		return err
	}
	return stage(c.dir, func(u *unpacker) error {
		for _, name := range names {
			err := u.fetch(ctx, from, files[name])
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (u *unpacker) fetch(ctx context.Context, from blob.Store, b task.Blob) error {
	f, err := u.create(b.Path, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(blob.Get(ctx, from, b, f), f.Close())
}

// unpack puts the files of a bundle into a directory. The bundle must have only files that match the patterns.
func unpack(dir, packed string, patterns []string) error {
	return stage(dir, func(u *unpacker) error { return bundle.Read(packed, patterns, bundle.MaxBytes, u.write) })
}

// stage puts files into a directory. It writes all of them into a temporary directory first, and then renames each, so
// that a file is there whole, and no file is if one of them cannot be. It replaces files, and writes nothing outside of
// the directory, whatever links are there.
func stage(dir string, fill func(*unpacker) error) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	temporary, err := os.MkdirTemp(dir, ".tdf-fetch-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	staged, err := os.OpenRoot(temporary)
	if err != nil {
		return err
	}
	defer staged.Close()
	u := &unpacker{root: root, staged: staged, temporary: filepath.Base(temporary)}
	err = fill(u)
	if err != nil {
		return err
	}
	for _, name := range u.names {
		err := u.check(name)
		if err != nil {
			return err
		}
	}
	for _, name := range u.names {
		err := root.Rename(u.temporary+"/"+name, name)
		if err != nil {
			return err
		}
	}
	return nil
}

type unpacker struct {
	root, staged *os.Root
	temporary    string // the directory of staged, in root
	names        []string
}

// write writes a file into the temporary directory.
func (u *unpacker) write(name string, mode fs.FileMode, content io.Reader) error {
	f, err := u.create(name, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

func (u *unpacker) create(name string, mode fs.FileMode) (*os.File, error) {
	err := u.staged.MkdirAll(path.Dir(name), 0o755)
	if err != nil {
		return nil, err
	}
	u.names = append(u.names, name)
	return u.staged.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode|0o600)
}

// check makes the directory of a file, and makes sure that a rename can replace what is there.
func (u *unpacker) check(name string) error {
	err := u.root.MkdirAll(path.Dir(name), 0o755)
	if err != nil {
		return fmt.Errorf("make the directory of %s: %w", name, err)
	}
	info, err := u.root.Lstat(name)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%s: there is a directory in the way; move it, or run tdf in another directory", name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
