package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/task"
)

// attached are the files that the worker has put into the directory of a command, as they were before it began.
type attached map[string]fs.FileInfo

// attach puts the files that the task names as blobs into the directory in which the program begins
// (docs/blobs.md). No program has used this directory yet. It replaces files of the program itself.
func (l *launch) attach(ctx context.Context, r *Round) (attached, error) {
	var files []task.Blob
	for _, text := range r.execution.task.Blobs {
		b, err := task.ParseBlob(text)
		if err != nil {
			return nil, err
		}
		if b.Path != "" {
			files = append(files, b)
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	store, err := r.execution.s.broker.Blobs(ctx)
	if err != nil {
		return nil, blobError(err)
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	a := attached{}
	for _, b := range files {
		if a[b.Path], err = l.attachFile(ctx, r, store, root, b); err != nil {
			return nil, fmt.Errorf("the file %s: %w", b.Path, blobError(err))
		}
	}
	return a, nil
}

func (l *launch) attachFile(ctx context.Context, r *Round, store blob.Store, root *os.Root, b task.Blob) (fs.FileInfo,
	error,
) {
	if err := root.MkdirAll(path.Dir(b.Path), 0o755); err != nil {
		return nil, err
	}
	if err := root.RemoveAll(b.Path); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(b.Path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := blob.Get(ctx, store, b, f); err != nil {
		return nil, err
	}
	if c := l.host.Credential(r.Slot); c != nil {
		err := f.Chown(int(c.Uid), int(c.Gid))
		for dir := path.Dir(b.Path); err == nil && dir != "."; dir = path.Dir(dir) {
			err = chownDirectory(root, dir, int(c.Uid), int(c.Gid))
		}
		if err != nil {
			return nil, err
		}
	}
	return f.Stat()
}

// chownDirectory gives a directory to a user. It opens the directory first, because a program may meanwhile give its
// name to a file of another user.
func chownDirectory(root *os.Root, name string, uid, gid int) error {
	d, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Chown(uid, gid)
}

// blobError marks an error as [Unfit] if another worker may have the blobs. A blob that is lost fails the round.
func blobError(err error) error {
	if errors.Is(err, blob.ErrElsewhere) {
		return Unfit(err)
	}
	return err
}

// addUnchanged adds the files that the program has not changed, so that they are not brought back.
func (a attached) addUnchanged(dir string, to map[string]bool) map[string]bool {
	if len(a) > 0 && to == nil {
		to = map[string]bool{}
	}
	for name, before := range a {
		now, err := os.Lstat(path.Join(dir, name))
		if err == nil && os.SameFile(before, now) && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() {
			to[name] = true
		}
	}
	return to
}

// needsOwnDir reports whether the program runs in a directory that only this round uses, because the round gets files
// or brings some back: files of other rounds must not match.
func needsOwnDir(t *task.Task) bool {
	for _, text := range t.Blobs {
		if b, err := task.ParseBlob(text); err == nil && b.Path != "" {
			return true
		}
	}
	return len(t.Fetch) > 0
}
