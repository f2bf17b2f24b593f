package rounddir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveAll removes a file, or a directory with everything in it. Unlike [os.RemoveAll], it also removes directories
// that their owner may not read or write. It needs few descriptors even for a very deep tree, because it moves deep
// directories up and removes them there. It follows no link, and removes nothing on other file systems. No other
// process may add entries to the directory during the call.
func RemoveAll(path string) error { return removeAll(path, never) }

func never() bool { return false }

// removeAll is RemoveAll, but it stops with errEnough when the function enough returns true.
func removeAll(path string, enough func() bool) error {
	parent, err := openDir(unix.AT_FDCWD, filepath.Dir(path), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer parent.Close()
	if err := removeSome(parent, filepath.Base(path), enough); err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

func removeIn(parent *dir, name string) error { return removeSome(parent, name, never) }

func removeSome(parent *dir, name string, enough func() bool) error {
	err := removeEmpty(parent, name)
	if isFull(err) {
		err = removeFull(parent, name, enough)
	}
	return err
}

var errEnough = errors.New("the removal was stopped")

func removeFull(parent *dir, name string, enough func() bool) error {
	top, err := parent.open(name)
	if err != nil {
		return err
	}
	defer top.Close()
	c := clearing{top: top, enough: enough}
	for {
		done, err := c.pass()
		if err != nil {
			return err
		}
		if done {
			return removeEmpty(parent, name)
		}
	}
}

// A clearing empties a directory.
type clearing struct {
	top    *dir
	enough func() bool
	over   bool // enough has returned true
	moved  int  // counts the tries to move a directory up; the directory gets this number as its new name
}

// pass goes through the entries of the top directory once. It removes as much as it can. If the directory had no
// entries, done is true. If pass neither removed nor moved an entry, it returns an error.
func (c *clearing) pass() (done bool, err error) {
	some, got := false, false
	var first error
	err = c.top.each(func(name string) bool {
		some = true
		err := removeEmpty(c.top, name)
		if isFull(err) {
			var moved bool
			moved, err = c.level(name)
			got = got || moved
		}
		got = got || err == nil
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", name, err)
		}
		return c.next()
	})
	switch {
	case err != nil:
	case c.over:
		err = errEnough
	case some && !got:
		err = first
	}
	return !some, err
}

// next reports whether to go on with the next entry.
func (c *clearing) next() bool {
	c.over = c.over || c.enough()
	return !c.over
}

// level empties a directory directly below the top directory, and removes it. If an inner directory has entries, level
// moves it up into the top directory.
func (c *clearing) level(name string) (got bool, err error) {
	d, err := c.top.open(name)
	if err != nil {
		return false, err
	}
	defer d.Close()
	var first error
	err = d.each(func(entry string) bool {
		err := removeEmpty(d, entry)
		if isFull(err) {
			err = c.moveUp(d, entry)
		}
		got = got || err == nil
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", entry, err)
		}
		return c.next()
	})
	if err = errors.Join(first, err); err != nil {
		return got, err
	}
	return got, removeEmpty(c.top, name)
}

// moveUp moves a directory into the top directory, under the next free number. Entries of the program may already
// have numbers as names.
func (c *clearing) moveUp(d *dir, name string) error {
	if err := d.makeUsable(name); err != nil {
		return err
	}
	for {
		c.moved++
		err := unix.Renameat(d.fd(), name, c.top.fd(), strconv.Itoa(c.moved))
		if !isFull(err) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
}

// removeEmpty removes any entry except a directory that has entries.
func removeEmpty(d *dir, name string) error {
	err := unix.Unlinkat(d.fd(), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	// the error for unlinking a directory depends on the system
	switch again := unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR); {
	case errors.Is(again, unix.ENOTDIR):
		return err
	case errors.Is(again, unix.ENOENT):
		return nil
	default:
		return again
	}
}

func isFull(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }
