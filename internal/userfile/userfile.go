// Package userfile reads and writes the file of the people who log in to the dashboard with a password
// (docs/dashboard.md, "Users"). Each line has the name of a user, its role, and the argon2id hash of its password, in
// the form of the PHC.
package userfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// A User is a line of the file.
type User struct {
	Name string
	Role access.Role
	Hash string
}

// Token returns the token that stands for the user.
func (u User) Token() access.Token { return access.User(u.Name, u.Role, u.Hash) }

// maxFile is the largest size of the file, in bytes, and maxUsers the largest number of its users.
const (
	maxFile  = 1 << 20
	maxUsers = 1000
)

// Errors of changes.
var (
	ErrTaken  = task.NewError(task.CodeTaken, "the file has a user of this name; remove it first")
	ErrNoUser = task.NewError(task.CodeNotFound, "the file has no user of this name")
)

// Read returns the users in a file. The file must belong to its owner alone, as other files with secrets. No error
// shows a hash.
func Read(path string) ([]User, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // to open a FIFO would otherwise wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := secrets.Private(f); err != nil {
		return nil, err
	}
	return parse(io.LimitReader(f, maxFile), path)
}

func parse(r io.Reader, name string) (all []User, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("%s: line %d: want a name, a role and a hash", name, n)
		}
		u := User{words[0], access.Role(words[1]), words[2]}
		t := u.Token()
		if _, wrong := parseHash(u.Hash); wrong != nil || t.Check() != nil || !known(u.Role) {
			return nil, fmt.Errorf("%s: line %d: the name, the role or the hash is invalid", name, n)
		}
		if slices.ContainsFunc(all, func(other User) bool { return other.Name == u.Name }) {
			return nil, fmt.Errorf("%s: line %d: the user is there twice", name, n)
		}
		if all = append(all, u); len(all) > maxUsers {
			return nil, fmt.Errorf("%s: more than %d users", name, maxUsers)
		}
	}
	return all, lines.Err()
}

// known reports whether a user can have the role. The dashboard is of no use for a worker.
func known(role access.Role) bool { return role.Rights().See != access.None }

// Add adds a user to a file, which it makes if there is none.
func Add(path, name string, role access.Role, password string) error {
	all, err := Read(path)
	switch t := access.User(name, role, ""); {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case t.Check() != nil:
		return t.Check()
	case !known(role):
		return task.NewError(task.CodeInvalid, "a user cannot have the role "+string(role)+", which sees no tasks")
	case slices.ContainsFunc(all, func(u User) bool { return u.Name == name }):
		return ErrTaken
	}
	hash, err := Hash(password)
	if err != nil {
		return err
	}
	return write(path, append(all, User{name, role, hash}))
}

// Remove removes a user from a file. Its sessions end at once.
func Remove(path, name string) error {
	all, err := Read(path)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(u User) bool { return u.Name == name })
	if len(rest) == len(all) {
		return ErrNoUser
	}
	return write(path, rest)
}

// write replaces the file at once, so that a reader sees either the old or the new one. The owner stays: root changes a
// file that the server must be able to read. A new file gets the owner of its directory.
func write(path string, all []User) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with the mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the file was renamed
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(f)
	for _, u := range all {
		fmt.Fprintln(out, u.Name, u.Role, u.Hash)
	}
	if err := errors.Join(out.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
