package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks bounds the links in one path, as the kernel does.
const mostLinks = 40

// Open opens a directory below base, and makes missing directories. If own is true and another user controls the
// directory ([Check]), Open returns an error. The error names the directory and wraps the cause.
func Open(base, below string, own bool) (*os.File, error) {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		base, below = filepath.Join(base, below), ""
		if err := os.MkdirAll(base, 0o755); err != nil {
			return nil, err
		}
	}
	w := &walk{rest: split(below)}
	err := w.start(base)
	for err == nil && len(w.rest) > 0 {
		err = w.step()
	}
	if err == nil && own {
		err = w.check()
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return os.NewFile(uintptr(w.at), w.path), nil
}

func split(path string) []string { return strings.Split(path, string(filepath.Separator)) }

// A walk opens the directories of a path, one after the other.
type walk struct {
	at    int // the descriptor of the present directory; valid if the field open is true
	open  bool
	path  string
	rest  []string
	links int

	findOnly bool // make no directories
}

func (w *walk) start(dir string) error {
	at, err := unix.Open(dir, search|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	w.enter(at, dir)
	return nil
}

func (w *walk) enter(at int, path string) {
	w.close()
	w.at, w.path, w.open = at, path, true
}

func (w *walk) close() {
	if w.open {
		unix.Close(w.at)
		w.open = false
	}
}

// step enters the next directory.
func (w *walk) step() error {
	name := w.rest[0]
	if name == "" || name == "." {
		w.rest = w.rest[1:]
		return nil
	}
	path := filepath.Join(w.path, name)
	next, err := unix.Openat(w.at, name, search|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && !w.findOnly {
		if err = unix.Mkdirat(w.at, name, 0o755); err == nil || errors.Is(err, unix.EEXIST) {
			next, err = unix.Openat(w.at, name, search|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return w.follow(name, path)
	}
	if err != nil {
		return &fs.PathError{Op: w.verb(), Path: path, Err: err}
	}
	w.enter(next, path)
	w.rest = w.rest[1:]
	return nil
}

// verb returns the name of the failed operation, for an error about a directory.
func (w *walk) verb() string {
	if w.findOnly {
		return "open"
	}
	return "mkdir"
}

// follow follows a link, or returns an error if the link cannot be trusted.
func (w *walk) follow(name, path string) error {
	var info unix.Stat_t
	if err := unix.Fstatat(w.at, name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if info.Mode&unix.S_IFMT != unix.S_IFLNK {
		return &fs.PathError{Op: w.verb(), Path: path, Err: unix.ENOTDIR}
	}
	if !trusted(info.Uid) || w.check() != nil {
		remedy := "make it a directory"
		if w.findOnly && len(w.rest) == 1 {
			remedy = "copy the file there"
		}
		return fmt.Errorf("open %s: it is a symbolic link that another user made, or could have made; %s", path, remedy)
	}
	w.links++
	if w.links > mostLinks {
		return &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(w.at, name, buf)
	if err != nil {
		return &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	target := string(buf[:n])
	w.rest = append(split(target), w.rest[1:]...)
	if !filepath.IsAbs(target) {
		return nil
	}
	return w.start("/")
}

func (w *walk) check() error {
	var info unix.Stat_t
	if err := unix.Fstat(w.at, &info); err != nil {
		return &fs.PathError{Op: "stat", Path: w.path, Err: err}
	}
	return controlled(w.path, &info)
}

// Check returns an error if a user other than root and the worker's user controls a directory. A user controls a
// directory if the user owns it, or can replace entries in it.
func Check(dir string) error {
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	return controlled(dir, &info)
}

func controlled(path string, info *unix.Stat_t) error {
	mode := uint32(info.Mode)
	switch sticky := mode&unix.S_ISVTX != 0; {
	case !trusted(info.Uid):
		return fmt.Errorf("%s belongs to user %d; want root or the worker's user (chown root %[1]s)", path, info.Uid)
	case mode&0o002 != 0 && !sticky:
		return fmt.Errorf("all users may write to %s; want a directory to which only root or the worker may write "+
			"(chmod go-w %[1]s)", path)
	case mode&0o020 != 0 && !sticky && info.Gid != 0 && int(info.Gid) != os.Getegid():
		return fmt.Errorf("group %d may write to %s; want a directory to which only root or the worker may write "+
			"(chmod go-w %[2]s)", info.Gid, path)
	}
	return nil
}

func trusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }
