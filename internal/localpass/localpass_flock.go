//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package localpass

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A File holds a password as long as it is open.
type File struct {
	Path, Password string

	file *os.File
}

// ErrHeld says that a process that lives keeps a password for that address.
var ErrHeld = errors.New("another process of this user keeps a password for that address")

// Create makes a password for a Redis at a loopback address, and the file that tells it. The error may be [ErrHeld].
func Create(host string, port int) (*File, error) {
	path, err := place(host, port)
	if err != nil {
		return nil, err
	}
	f, err := hold(path)
	if err != nil {
		return nil, err
	}
	made := &File{Path: path, Password: rand.Text(), file: f}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(made.Password+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write password file: %w", err), made.Close())
	}
	return made, nil
}

// place returns the path of the file in the first directory that can be used.
func place(host string, port int) (string, error) {
	var problems []error
	for _, dir := range directories() {
		err := makeOwn(dir)
		if err == nil {
			return filepath.Join(dir, nameOf(host, port)), nil
		}
		problems = append(problems, err)
	}
	return "", fmt.Errorf("make a directory for the password: %w", errors.Join(problems...))
}

// Close removes the file.
func (f *File) Close() error {
	return errors.Join(os.Remove(f.Path), f.file.Close())
}

const (
	holdTries = 50                    // others look at a file that nobody holds by locking it for a moment
	holdPause = 10 * time.Millisecond // between two tries
)

// hold opens a file, makes it if need be, and locks it.
func hold(path string) (*os.File, error) {
	for try := 0; ; try++ {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open password file: %w", err)
		}
		err = isOwn(f)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err == nil && isAt(f, path) {
			return f, nil
		}
		f.Close()
		switch held := errors.Is(err, syscall.EWOULDBLOCK); {
		case err != nil && !held:
			return nil, fmt.Errorf("lock password file: %w", err)
		case try >= holdTries && held:
			return nil, ErrHeld
		case try >= holdTries:
			return nil, fmt.Errorf("lock password file: %s is replaced again and again", path)
		}
		time.Sleep(holdPause)
	}
}

// isAt says whether a path leads to an open file: its last holder may have removed it.
func isAt(f *os.File, path string) bool {
	a, err := f.Stat()
	b, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// Find returns the password of the Redis that a tdf up of this user runs at a loopback address; "" if there is none.
func Find(host string, port int) string {
	if !isLoopback(host) {
		return ""
	}
	for _, dir := range directories() {
		if isOwnDirectory(dir) != nil {
			continue
		}
		if password := read(filepath.Join(dir, nameOf(host, port))); password != "" {
			return password
		}
	}
	return ""
}

// longest is how much of a file is read, in bytes.
const longest = 1 << 10

func read(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if isOwn(f) != nil || syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil { // nobody holds it
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// nameOf names the file of an address. A home directory may be shared with other machines, so this one's name is in it.
func nameOf(host string, port int) string {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	machine, _ := os.Hostname()
	return fmt.Sprintf("redis-%s-%s", machine, net.JoinHostPort(host, strconv.Itoa(port)))
}

// directories are those where the file may be, the preferred one first.
func directories() []string {
	var dirs []string
	if dir, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "tdf"))
	}
	return append(dirs, filepath.Join(os.TempDir(), "tdf-"+strconv.Itoa(os.Geteuid())))
}

// makeOwn makes a directory unless it is there, and makes sure that nobody else can write to it.
func makeOwn(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return isOwnDirectory(dir)
}

func isOwnDirectory(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return ownedBy(d, 0o022)
}

// isOwn says why a file cannot be trusted: nil if it is a regular file that only this user can read.
func isOwn(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", f.Name())
	}
	return ownedBy(f, 0o077)
}

// ownedBy says why a file may be somebody else's: its owner, or a right of others.
func ownedBy(f *os.File, denied os.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", f.Name())
	}
	if info.Mode().Perm()&denied != 0 {
		return fmt.Errorf("%s: its mode is %v: others may change or read it", f.Name(), info.Mode().Perm())
	}
	return nil
}
