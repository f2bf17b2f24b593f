package userfile

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// Users log in with their passwords, and no longer when they are removed. A new password is that of another token.
func TestUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	expect.NoError(t, Add(path, "ada", access.Operator, "correct horse"))
	expect.NoError(t, Add(path, "bob", access.Viewer, "correct horse"))
	expect.FailsWith(t, Add(path, "ada", access.Viewer, "correct horse"), ErrTaken)
	expect.Equal(t, expect.Result(os.Stat(path)).Value(t).Mode().Perm(), 0o600)
	content := string(expect.Result(os.ReadFile(path)).Value(t))
	expect.Contains(t, content, "ada operator $argon2id$v=19$m=19456,t=2,p=1$")
	expect.NotContains(t, content, "horse")
	users := Open(path, slog.New(slog.DiscardHandler))
	ada := expect.Result(users.Authenticate(t.Context(), "ada", "correct horse")).Value(t)
	expect.True(t, ada.User, ada)
	expect.Equal(t, ada.Name, "ada")
	expect.Equal(t, ada.Role, access.Operator)
	expect.Equal(t, ada.Holder(), "user ada")
	for _, wrong := range [][2]string{{"ada", "Correct horse"}, {"ada", ""}, {"eve", "correct horse"}, {"", ""}, {"ada\n", "correct horse"}, {"ada", strings.Repeat("x", 1<<20)}} {
		expect.Result(users.Authenticate(t.Context(), wrong[0], wrong[1])).FailsWith(t, ErrDenied, wrong)
	}
	expect.NoError(t, Remove(path, "ada"))
	expect.Result(users.Authenticate(t.Context(), "ada", "correct horse")).FailsWith(t, ErrDenied)
	expect.FailsWith(t, Remove(path, "ada"), ErrNoUser)
	expect.NoError(t, Add(path, "ada", access.Operator, "another horse"))
	again, ok := users.Find("ada")
	expect.True(t, ok, "the old sessions of a user with a new password go on")
	expect.True(t, !again.Same(&ada), "the old sessions of a user with a new password go on")
	for name, role := range map[string]access.Role{"eve": access.Worker, "eve ": access.Viewer, "": access.Viewer, "Eve": "root"} {
		expect.True(t, Add(path, name, role, "correct horse") != nil, "added", name, role)
	}
	expect.Fails(t, Add(path, "eve", access.Viewer, "short"), "invalid password")
}

// A file that others can read, or that is invalid, has no users. No error shows a hash.
func TestInvalidFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	expect.NoError(t, Add(path, "ada", access.Operator, "correct horse"))
	good := string(expect.Result(os.ReadFile(path)).Value(t))
	expect.NoError(t, os.Chmod(path, 0o640))
	expect.Result(Read(path)).Fails(t, "its mode is 0640")
	expect.NoError(t, os.Chmod(path, 0o600))
	for _, text := range []string{
		"ada operator", good + good, strings.Replace(good, "operator", "root", 1), strings.Replace(good, "operator", "worker", 1), strings.Replace(good, "ada", "a/b", 1),
		strings.Replace(good, "m=19456", "m=4194304", 1), strings.Replace(good, "t=2", "t=1000000", 1), strings.Replace(good, "p=1", "p=0", 1), strings.Replace(good, "p=1", "p=300", 1),
		strings.Replace(good, "argon2id", "argon2i", 1), strings.Replace(good, "v=19", "v=16", 1), strings.Replace(good, "m=19456", "m=+19456", 1), good[:len(good)-20] + "!\n", "ada operator $argon2id$v=19$m=8,t=1,p=1$$\n",
	} {
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Read(path)
		expect.MustTrue(t, err != nil, text, err)
		expect.NotContains(t, err.Error(), "$")
		expect.Result(Open(path, slog.New(slog.DiscardHandler)).Authenticate(t.Context(), "ada", "correct horse")).FailsWith(t, errUnread)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	expect.NoError(t, syscall.Mkfifo(fifo, 0o600))
	expect.Result(Read(fifo)).Fails(t, "it is not a regular file")
	expect.NoError(t, os.WriteFile(path, []byte("# people\n\n"+good), 0o600))
	expect.MustLen(t, expect.Result(Read(path)).Value(t), 1)
}

// If root changes a file, it keeps its owner, who is the user of the server.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "users")
	owner := func() uint32 { return expect.Result(os.Stat(path)).Value(t).Sys().(*syscall.Stat_t).Uid }
	expect.NoError(t, os.Chown(dir, 4242, 4242))
	expect.NoError(t, Add(path, "ada", access.Operator, "correct horse"))
	expect.Equal(t, owner(), 4242)
	expect.NoError(t, os.Chown(path, 4243, 4243))
	expect.NoError(t, Add(path, "bob", access.Viewer, "correct horse"))
	expect.NoError(t, Remove(path, "ada"))
	expect.Equal(t, owner(), 4243)
}

// While the file cannot be read, a login says so, and the log has the reason once. The file may become readable without a new time.
func TestUnreadableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	expect.NoError(t, Add(path, "ada", access.Operator, "correct horse"))
	var log testlog.Buffer
	users := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	expect.Result(users.Authenticate(t.Context(), "ada", "correct horse")).OK(t)
	expect.NoError(t, os.Chmod(path, 0o644))
	other := expect.Result(os.ReadFile(path)).Value(t)
	expect.NoError(t, os.WriteFile(path, append(other, '\n'), 0o644))
	for range 2 {
		expect.Result(users.Authenticate(t.Context(), "ada", "correct horse")).FailsWith(t, errUnread)
	}
	expect.Equal(t, log.Count("its mode is 0644"), 1)
	expect.NoError(t, os.Chmod(path, 0o600))
	expect.Result(users.Authenticate(t.Context(), "ada", "correct horse")).OK(t)
}

// Passwords beyond the places wait, and no longer than their login.
func TestPlaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	expect.NoError(t, Add(path, "ada", access.Operator, "correct horse"))
	users := Open(path, slog.New(slog.DiscardHandler))
	for range atOnce {
		users.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Result(users.Authenticate(ctx, "ada", "correct horse")).FailsWith(t, context.Canceled)
	<-users.places
	expect.Result(users.Authenticate(t.Context(), "ada", "correct horse")).OK(t)
}
