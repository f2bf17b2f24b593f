package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Pauses between two looks at a lock that is taken: flock cannot be waited for with a context.
const (
	firstLockPause = 2 * time.Millisecond
	mostLockPause  = 200 * time.Millisecond
)

// lock takes the program's lock, waiting until ctx ends. A process that dies loses it.
func (j *job) lock(ctx context.Context) (unlock func(), err error) {
	if err := makePrivate(j.Dir, locksDir); err != nil {
		return nil, err
	}
	for pause := firstLockPause; ; pause = min(2*pause, mostLockPause) {
		f, err := tryLock(filepath.Join(j.Dir, locksDir, j.program))
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() { f.Close() }, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// tryLock returns nil where another has the lock. Closing the file gives it back.
//
// The file stays when the lock is given back: were it removed, two could hold two files of that
// name. Someone else may remove it, hence the look at what the name means once it is locked.
func tryLock(name string) (*os.File, error) {
	f, info, err := regular(os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600))
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm() != 0o600 { // of an earlier release
		_ = f.Chmod(0o600)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && sameFile(f, name) {
		return f, nil
	}
	f.Close()
	if err == nil || errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, &os.PathError{Op: "flock", Path: name, Err: err}
}

func sameFile(f *os.File, name string) bool {
	a, errA := f.Stat()
	b, errB := os.Stat(name)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sleep returns the cause when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
