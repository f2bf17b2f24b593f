//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package localpass

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/tdf-framework/tdf/internal/task"
)

// A File is a file with a secret. It is valid until Close.
type File struct {
	Path, Secret string

	file *os.File
}

// ErrHeld means that another running process has a file for the address.
var ErrHeld = task.NewError(task.CodeTaken, "another process of this user has a password file for that address")

// Create makes a password for a Redis at a loopback address, and stores it in a file. The error may be [ErrHeld].
func Create(host string, port int) (*File, error) { return keep(nameOf(host, port), rand.Text()) }

// KeepToken stores a token for the HTTP API at an address of this machine. The file has the header of a call with this
// token, because curl -H @FILE reads headers from a file, so that other users do not see the token among the arguments
// of curl. The name of the file has the host name, so that people can write it in a shell. The error may be [ErrHeld].
func KeepToken(addr, token string) (*File, error) {
	return keep(tokenPrefix()+addr, "Authorization: Bearer "+token)
}

func keep(name, secret string) (*File, error) {
	path, err := pathOf(name)
	if err != nil {
		return nil, err
	}
	f, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	removeStale(filepath.Dir(path))
	made := &File{Path: path, Secret: secret, file: f}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(fmt.Errorf("write password file: %w", err), made.Close())
	}
	if _, err := f.WriteAt([]byte(secret+"\n"), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("write password file: %w", err), made.Close())
	}
	return made, nil
}

// pathOf returns the path of a file in the first usable directory.
func pathOf(name string) (string, error) {
	var problems []error
	for _, dir := range directories() {
		if err := makeOwnDirectory(dir); err != nil {
			problems = append(problems, err)
			continue
		}
		return filepath.Join(dir, name), nil
	}
	return "", fmt.Errorf("make a directory for the password: %w", errors.Join(problems...))
}

// Close removes the file.
func (f *File) Close() error {
	return errors.Join(os.Remove(f.Path), f.file.Close())
}

const (
	// number of tries; one is not enough, because a reader may lock the file for a moment
	lockTries = 50
	lockPause = 10 * time.Millisecond // time between two tries
)

// lockFile opens or creates a file, and locks it.
func lockFile(path string) (*os.File, error) {
	for try := 0; ; try++ {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open password file: %w", err)
		}
		if err := checkOwnFile(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock password file: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && isFileAt(f, path) {
			return f, nil
		}
		f.Close()
		switch held := errors.Is(err, syscall.EWOULDBLOCK); {
		case err != nil && !held:
			return nil, fmt.Errorf("lock password file: %w", err)
		case try >= lockTries && held:
			return nil, ErrHeld
		case try >= lockTries:
			return nil, fmt.Errorf("lock password file: another process keeps replacing %s", path)
		}
		time.Sleep(lockPause)
	}
}

// isFileAt reports whether f is still the file at path. The process that held the lock before may have removed the
// file.
func isFileAt(f *os.File, path string) bool {
	a, err := f.Stat()
	b, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// Find returns the password of a Redis at a loopback address, if this user started this Redis with `tdf up`. Otherwise
// Find returns "".
func Find(host string, port int) string {
	if !isLoopback(host) {
		return ""
	}
	for _, dir := range directories() {
		if checkOwnDirectory(dir) != nil {
			continue
		}
		if password := read(filepath.Join(dir, nameOf(host, port))); password != "" {
			return password
		}
	}
	return ""
}

// Running returns the addresses of the Redis of each `tdf up` that this user runs on this machine with a password of
// its own, as "127.0.0.1:6379".
func Running() (addrs []string) {
	for _, dir := range directories() {
		if checkOwnDirectory(dir) != nil {
			continue
		}
		entries, _ := os.ReadDir(dir) // what can be read counts
		for _, e := range entries {
			addr, ok := strings.CutPrefix(e.Name(), prefix())
			if ok && read(filepath.Join(dir, e.Name())) != "" {
				addrs = append(addrs, addr)
			}
		}
	}
	return addrs
}

const maxFile = 1 << 10 // bytes

func read(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	// if Flock succeeds, no running tdf up holds the lock
	if checkOwnFile(f) != nil || syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// nameOf returns the name of the password file for an address on this machine.
func nameOf(host string, port int) string {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return prefix() + net.JoinHostPort(host, strconv.Itoa(port))
}

// prefix returns the beginning of the names of all password files of this machine.
func prefix() string { return "redis-" + machine() + "-" }

// tokenPrefix returns the beginning of the names of all files of this machine that have a token.
func tokenPrefix() string { return "api-" + hostName() + "-" }

// machine returns a text that differs on machines and containers that may share a home directory. It does not depend on
// the host name, because that may change while tdf up runs. A loopback address belongs to a network namespace of a
// running kernel. On systems other than Linux, machine returns the host name.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, err2 := os.Readlink("/proc/self/ns/net")
	if err != nil || err2 != nil {
		return hostName()
	}
	sum := sha256.Sum256(append(boot, network...))
	return hex.EncodeToString(sum[:8])
}

func hostName() string {
	name, _ := os.Hostname()
	return name
}

// directories returns the directories in which the file may be, in order of preference.
func directories() []string {
	var dirs []string
	if dir, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "tdf"))
	}
	return append(dirs, filepath.Join(os.TempDir(), "tdf-"+strconv.Itoa(os.Geteuid())))
}

// makeOwnDirectory makes a directory if it does not exist, and checks that only this user can write to it.
func makeOwnDirectory(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return checkOwnDirectory(dir)
}

func checkOwnDirectory(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return checkOwner(d, 0o022)
}

// checkOwnFile returns an error if f is not a regular file, or if another user owns it or has access to it.
func checkOwnFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.Name())
	}
	return checkOwner(f, 0o077)
}

// checkOwner returns an error if a file belongs to another user, or has one of the denied permissions.
func checkOwner(f *os.File, denied os.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", f.Name())
	}
	if info.Mode().Perm()&denied != 0 {
		return fmt.Errorf("%s has the mode %v: other users can read or change it", f.Name(), info.Mode().Perm())
	}
	return nil
}
