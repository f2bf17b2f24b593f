package retention

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A remover removes files. It keeps the directory of the last file open, because the next file is usually in the same
// directory.
type remover struct {
	at   *place
	root *os.Root
	dir  *os.File // the same directory
}

func (r *remover) close() {
	if r.root != nil {
		r.root.Close()
		r.dir.Close()
	}
	r.at, r.root, r.dir = nil, nil, nil
}

// stat returns information about a file. If another file has its name, the error is [fs.ErrNotExist].
func (r *remover) stat(f file) (fs.FileInfo, error) {
	if err := r.enter(f.dir); err != nil {
		return nil, err
	}
	info, err := r.root.Lstat(f.name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	if id, err := identify(int(r.dir.Fd()), f.name); err != nil || id != f.identity {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	return info, nil
}

// remove removes a file, unless the file has changed since the search found it. It returns how many bytes the removal
// freed.
func (r *remover) remove(f file) (removed bool, bytes int64, err error) {
	info, err := r.stat(f)
	if err != nil {
		return false, 0, err
	}
	if info.ModTime().After(f.modified) {
		return false, 0, nil
	}
	if f.tree {
		bytes = size(r.root, f.name)
		return true, bytes, removeTree(r.root, f.name)
	}
	return true, info.Size(), r.root.Remove(f.name)
}

// enter opens a directory. It follows no link below the base.
func (r *remover) enter(dir *place) error {
	if r.at == dir {
		return nil
	}
	r.close()
	root, err := os.OpenRoot(dir.base)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(dir.below, string(filepath.Separator)) {
		if name == "." {
			continue
		}
		child, err := open(root, name)
		root.Close()
		if err != nil {
			return err
		}
		root = child
	}
	if r.dir, err = root.Open("."); err != nil {
		root.Close()
		return err
	}
	r.at, r.root = dir, root
	return nil
}

// removeTree removes a directory, even if a program has made parts of it inaccessible.
func removeTree(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if errors.Is(err, fs.ErrPermission) {
		makeUsable(root, name)
		err = root.RemoveAll(name)
	}
	return err
}

func makeUsable(root *os.Root, dir string) {
	if info, err := root.Lstat(dir); err != nil || !info.IsDir() || root.Chmod(dir, 0o700) != nil {
		return
	}
	entries, _ := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		if e.IsDir() {
			makeUsable(root, path.Join(dir, e.Name()))
		}
	}
}
