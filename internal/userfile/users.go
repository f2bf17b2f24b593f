package userfile

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
)

// atOnce is the largest number of passwords that are checked at the same time, because each check needs memory.
const atOnce = 2

// Users are the users of a file. They follow its changes. Several goroutines may use them.
type Users struct {
	path   string
	log    *slog.Logger
	places chan struct{}

	mu     sync.Mutex
	info   os.FileInfo // of the file that was read
	all    map[string]User
	failed string // why the file could not be read; "" if it was
}

// Open returns the users of a file. It does not read the file yet. If the file cannot be read later, the log says so.
func Open(path string, log *slog.Logger) *Users {
	return &Users{path: path, log: log, places: make(chan struct{}, atOnce)}
}

// Find returns the token that stands for a user. It returns false if there is no such user, or if the file cannot be
// read.
func (u *Users) Find(name string) (access.Token, bool) {
	all, _ := u.users()
	user, ok := all[name]
	return user.Token(), ok
}

// users returns the users, and reads the file again if it has changed. It reads a file that it could not read each
// time, because a change of the owner or the mode does not show in the time of the file.
func (u *Users) users() (map[string]User, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := os.Stat(u.path)
	if err == nil && u.all != nil && os.SameFile(info, u.info) && info.Size() == u.info.Size() &&
		info.ModTime().Equal(u.info.ModTime()) {
		return u.all, nil
	}
	u.all, u.info = nil, info
	list, err := Read(u.path)
	if err != nil {
		if u.failed != err.Error() {
			u.failed = err.Error()
			u.log.Error("cannot read the users of the dashboard; until it can, no user can log in", "error", err)
		}
		return nil, errUnread
	}
	u.all, u.failed = map[string]User{}, ""
	for _, one := range list {
		u.all[one.Name] = one
	}
	return u.all, nil
}

var errUnread = task.NewError(task.CodeUnavailable,
	"the server cannot read the file of its users; its log says why. A login with a token is still possible")

// ErrDenied means that there is no such user, or that the password is wrong.
var ErrDenied = task.NewError(task.CodeForbidden, "the user or the password is wrong")

// none is checked in place of the hash of an unknown user, so that the time of the answer does not tell who is a user.
var none = hash{
	memory: usual.memory, time: usual.time, threads: usual.threads, salt: make([]byte, 16),
	key: make([]byte, 32),
}

// Authenticate returns the token that stands for a user with a password. It waits while too many others are checked,
// until ctx ends. If the file cannot be read, the error says so.
func (u *Users) Authenticate(ctx context.Context, name, password string) (access.Token, error) {
	all, err := u.users()
	if err != nil {
		return access.Token{}, err
	}
	user, ok := all[name]
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
