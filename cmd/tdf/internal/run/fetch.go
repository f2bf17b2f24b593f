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

	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/manager"
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
	if err == nil && packed == "" {
		err = errors.New("it has brought back no files; its worker may be of a version that does not know --fetch")
	}
	if err == nil {
		err = unpack(c.dir, packed, t.Fetch)
	}
	if err != nil {
		return fmt.Errorf("--fetch: files of task %d: %w", t.ID, err)
	}
	return nil
}

// unpack puts the files of a bundle into a directory. The bundle must have only files that match the patterns. It
// writes all of them into a temporary directory first, and then renames each, so that a file is there whole, and no
// file is if one of them cannot be. It replaces files, and writes nothing outside of the directory, whatever links
// are there.
func unpack(dir, packed string, patterns []string) (err error) {
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
	err = bundle.Read(packed, patterns, bundle.MaxBytes, u.write)
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
	err := u.staged.MkdirAll(path.Dir(name), 0o755)
	if err != nil {
		return err
	}
	f, err := u.staged.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	u.names = append(u.names, name)
	return errors.Join(err, f.Close())
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
