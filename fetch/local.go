package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// copyLocal takes rsync:PATH of this machine, which needs no rsync.
func (j *job) copyLocal(ctx context.Context) (string, error) {
	name := j.src.Location
	if !filepath.IsAbs(name) {
		name = filepath.Join(j.Dir, name)
	}
	// Not to wait for the other end of a named pipe.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("%s is a directory; a source is one file", name)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file but a %s", name, kind(info.Mode()))
	case info.Size() > j.Limits.Bytes:
		return "", j.Limits.tooManyBytes()
	}
	return j.spool(ctx, f)
}
