package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Pauses between attempts to get a lock. They are necessary because a blocking flock ignores the context.
const (
	firstLockPause = 2 * time.Millisecond
	maxLockPause   = 200 * time.Millisecond
)

// lock waits for the program's lock until ctx ends. If the process dies, the kernel releases the lock, but not before
// setup.sh and all processes that it started have ended, because they keep the file open.
func (j *job) lock(ctx context.Context) (unlock func(), err error) {
	if err := makePrivate(j.Dir, locksDir, 0o700); err != nil {
		return nil, err
	}
	for pause := firstLockPause; ; pause = min(2*pause, maxLockPause) {
		f, err := tryLock(filepath.Join(j.Dir, locksDir, j.program))
		if err != nil {
			return nil, err
		}
		if f != nil {
			j.locked = f
			return func() { release(f) }, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// tryLock locks a file and returns it. It returns nil if another process holds the lock. Closing the file releases the
// lock.
//
// TDF never removes the file. If it did, two processes could lock two files of the same name. A user may remove the
// file, so tryLock checks that the file that it has locked still has this name.
func tryLock(name string) (*os.File, error) {
	f, info, err := regular(os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600))
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm() != 0o600 { // another program has changed the mode
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

// release releases a lock, even if a process of setup.sh has escaped and keeps the file open.
func release(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	f.Close()
}

func sameFile(f *os.File, name string) bool {
	a, errA := f.Stat()
	b, errB := os.Stat(name)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sleep waits for d. If ctx ends first, sleep returns the cause of ctx.
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
