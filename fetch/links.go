package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

type link struct{ name, target string }

// checkTarget returns an error if the target of a symbolic link is outside the archive. It does not detect a chain of
// links that leads out of the archive. makeLinks detects this chain.
func checkTarget(name, target string) error {
	switch {
	case target == "", strings.ContainsRune(target, 0), len(target) > maxPathBytes:
		return errors.New("is a symbolic link with an invalid target")
	case path.IsAbs(target):
		return fmt.Errorf("is a symbolic link to the absolute path %q", shorten(target))
	case !filepath.IsLocal(path.Join(path.Dir(name), target)):
		return fmt.Errorf("is a symbolic link out of the archive, to %q", shorten(target))
	}
	return nil
}

// hardLink creates a hard link to a file that was unpacked earlier.
func (u *unpacker) hardLink(name, target string) error {
	clean, err := localName(target)
	if err != nil {
		return fmt.Errorf("is a hard link to %q, which %w", shorten(target), err)
	}
	info, err := u.root.Lstat(clean)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("is a hard link to %q, but no earlier file of the archive has this name", shorten(target))
	}
	return explainExist(u.root.Link(clean, name))
}

// makeLinks creates the symbolic links. Call it after all files are written, so that no file is written through a link.
// makeLinks then follows each link through root, which returns an error if the link leads out of the directory.
func (u *unpacker) makeLinks() error {
	for _, l := range u.links {
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		if err := u.root.Symlink(l.target, l.name); err != nil {
			return &entryError{l.name, explainExist(err)}
		}
	}
	for _, l := range u.links {
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		if _, err := u.root.Stat(l.name); err != nil {
			return &entryError{l.name, explainLink(l.target, err)}
		}
	}
	return nil
}

func explainLink(target string, err error) error {
	target = shorten(target)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("is a symbolic link to %q, which is not in the archive", target)
	case errors.Is(err, syscall.ELOOP):
		return fmt.Errorf("is a symbolic link to %q, in a cycle", target)
	}
	return fmt.Errorf("is a symbolic link to %q that cannot be followed inside the archive: %w", target, err)
}
