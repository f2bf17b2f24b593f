package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// copyLocal copies a source rsync:PATH, a file of this machine, to the file payload. It does not need rsync.
func (j *job) copyLocal(ctx context.Context) (string, error) {
	name := j.src.Location
	if !filepath.IsAbs(name) {
		name = filepath.Join(j.Dir, name)
	}
	// With O_NONBLOCK, opening a named pipe does not wait for a writer.
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
		return "", fmt.Errorf("%s is a %s, not a regular file", name, kind(info.Mode()))
	case info.Size() > j.Limits.Bytes:
		return "", j.Limits.tooManyBytes()
	}
	return j.spool(ctx, f)
}
