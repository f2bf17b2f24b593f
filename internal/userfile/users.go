package userfile

import (
	"context"
	"os"
	"sync"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/access"
)

// atOnce is the largest number of passwords that are checked at the same time, because each check needs memory.
const atOnce = 2

// Users are the users of a file. They follow its changes. Several goroutines may use them.
type Users struct {
	path   string
	places chan struct{}

	mu   sync.Mutex
	info os.FileInfo // of the file that was read
	all  map[string]User
}

// Open returns the users of a file. It does not read the file yet.
func Open(path string) *Users { return &Users{path: path, places: make(chan struct{}, atOnce)} }

// Find returns the token that stands for a user. It returns false if there is no such user, or if the file cannot be
// read.
func (u *Users) Find(name string) (access.Token, bool) {
	user, ok := u.users()[name]
	return user.Token(), ok
}

// users returns the users, and reads the file again if it has changed.
func (u *Users) users() map[string]User {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := os.Stat(u.path)
	if err != nil {
		u.all = nil
		return nil
	}
	if u.all != nil && os.SameFile(info, u.info) && info.Size() == u.info.Size() &&
		info.ModTime().Equal(u.info.ModTime()) {
		return u.all
	}
	all, _ := Read(u.path) // without a valid file, there are no users; the server checks the file when it starts
	u.all, u.info = map[string]User{}, info
	for _, one := range all {
		u.all[one.Name] = one
	}
	return u.all
}

// ErrDenied means that there is no such user, or that the password is wrong.
var ErrDenied = tdf.NewError(tdf.CodeForbidden, "the user or the password is wrong")

// none is checked in place of the hash of an unknown user, so that the time of the answer does not tell who is a user.
var none = hash{
	memory: usual.memory, time: usual.time, threads: usual.threads, salt: make([]byte, 16),
	key: make([]byte, 32),
}

// Authenticate returns the token that stands for a user with a password. It waits while too many others are checked,
// until ctx ends.
func (u *Users) Authenticate(ctx context.Context, name, password string) (access.Token, error) {
	user, ok := u.users()[name]
	h, err := parseHash(user.Hash)
	if !ok || err != nil {
		h = none
	}
	if len(password) > maxPassword {
		return access.Token{}, ErrDenied
	}
	select {
	case u.places <- struct{}{}:
		defer func() { <-u.places }()
	case <-ctx.Done():
		return access.Token{}, context.Cause(ctx)
	}
	if !h.accepts(password) || !ok || err != nil {
		return access.Token{}, ErrDenied
	}
	return user.Token(), nil
}
