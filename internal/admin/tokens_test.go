package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	a := admin.New(testspace.Manager(t, cfg))
	text := expect.Result(a.AddToken(t.Context(), access.Token{Name: "ci", Role: access.Submitter})).Value(t)
	other := expect.Result(a.AddToken(t.Context(), access.Token{Name: "other", Role: access.Operator})).Value(t)
	for range 2 {
		got := expect.Result(a.Authenticate(t.Context(), text)).Value(t)
		expect.Equal(t, got.Name, "ci")
		expect.Equal(t, got.Role, access.Submitter)
	}
	swapped := "tdf_ci_" + other[strings.LastIndexByte(other, '_')+1:]
	for _, wrong := range []string{"", "ci", text + "A", text[:len(text)-1], strings.ToLower(text), swapped, "tdf_none_" + text[7:], "tdf_\x00_A", strings.Repeat("x", 1e6)} {
		if got, err := a.Authenticate(t.Context(), wrong); !errors.Is(err, access.ErrDenied) || got.Role != "" {
			t.Errorf("%.50q: %+v, %v", wrong, got, err)
		}
	}
	expect.NoError(t, a.RemoveToken(t.Context(), "ci"))
	expect.Result(a.Authenticate(t.Context(), text)).FailsWith(t, access.ErrDenied, "a revoked token")
	expect.Result(a.AddToken(t.Context(), access.Token{Name: "ci", Role: access.Viewer})).OK(t)
	expect.Result(a.Authenticate(t.Context(), text)).FailsWith(t, access.ErrDenied, "a revoked token whose name another token")
	stored := fmt.Sprint(client.HGetAll(t.Context(), cfg.Namespace+":tokens").Val())
	expect.NotContains(t, stored, other, "Redis has the secret text")
	expect.NotContains(t, stored, other[10:], "Redis has the secret text")
}

// A rotated token keeps everything but its text, and the old text is refused. Of two rotations at once, the later one
// gets an error.
func TestRotateToken(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	a := admin.New(testspace.Manager(t, cfg))
	expires := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	old := expect.Result(a.AddToken(t.Context(), access.Token{Name: "ci", Role: access.Submitter, Queues: []string{"q"}, Expires: expires})).Value(t)
	before := expect.Result(a.Authenticate(t.Context(), old)).Value(t)
	_, text, err := a.RotateToken(t.Context(), "ci")
	expect.NoError(t, err)
	expect.Result(a.Authenticate(t.Context(), old)).FailsWith(t, access.ErrDenied)
	got := expect.Result(a.Authenticate(t.Context(), text)).Value(t)
	expect.Equal(t, got.Role, access.Submitter)
	expect.Equal(t, fmt.Sprint(got.Queues), "[q]")
	expect.True(t, got.Expires.Equal(expires), got.Expires)
	expect.FailsWith(t, managing.Of(testspace.Manager(t, cfg)).Store.Accounts.ReplaceToken(t.Context(), before, got), access.ErrNoToken)
	_, _, err = a.RotateToken(t.Context(), "none")
	expect.FailsWith(t, err, access.ErrNoToken)
}

// AuthenticateName accepts the name of a token until the token is removed or expires. A name without a token is refused.
func TestAuthenticateName(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	a := admin.New(testspace.Manager(t, cfg))
	expect.Result(a.AddToken(t.Context(), access.Token{Name: "ci", Role: access.Submitter})).OK(t)
	got := expect.Result(a.AuthenticateName(t.Context(), "ci")).Value(t)
	expect.Equal(t, got.Name, "ci")
	expect.Equal(t, got.Role, access.Submitter)
	expect.True(t, client.ZScore(t.Context(), cfg.Namespace+":tokens_used", "ci").Val() > 0, "the use is not recorded")
	for _, name := range []string{"", "c", "CI", "ci\x00", "*", strings.Repeat("x", 1e6)} {
		expect.Result(a.AuthenticateName(t.Context(), name)).FailsWith(t, access.ErrDenied, name)
	}
	client.HSet(t.Context(), cfg.Namespace+":tokens", "ci", strings.Replace(client.HGet(t.Context(), cfg.Namespace+":tokens", "ci").Val(), "{", `{"expires":5,`, 1))
	expect.Result(a.AuthenticateName(t.Context(), "ci")).FailsWith(t, access.ErrDenied, "an expired token")
	expect.NoError(t, a.RemoveToken(t.Context(), "ci"))
	expect.Result(a.AuthenticateName(t.Context(), "ci")).FailsWith(t, access.ErrDenied, "a removed token")
}

// Redis records the first use of a token, and then at most one use a minute.
func TestLastUseOfToken(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	a := admin.New(testspace.Manager(t, cfg))
	text := expect.Result(a.AddToken(t.Context(), access.Token{Name: "ci", Role: access.Viewer})).Value(t)
	used := func() float64 { return client.ZScore(t.Context(), cfg.Namespace+":tokens_used", "ci").Val() }
	if _, err := a.Authenticate(t.Context(), text[:len(text)-1]+"!"); err == nil || used() != 0 {
		t.Errorf("a wrong text counts as a use: %v, %v", used(), err)
	}
	for range 2 {
		expect.Result(a.Authenticate(t.Context(), text)).OK(t)
	}
	first := used()
	if _, err := a.Authenticate(t.Context(), text); err != nil || first == 0 || used() != first {
		t.Errorf("used at %v, then at %v: %v", first, used(), err)
	}
	client.ZIncrBy(t.Context(), cfg.Namespace+":tokens_used", -61, "ci")
	if _, err := a.Authenticate(t.Context(), text); err != nil || used() < first {
		t.Errorf("a minute later: %v, %v", used(), err)
	}
}

func TestInvalidTokenIsNotAdded(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	a := admin.New(testspace.Manager(t, cfg))
	for _, token := range []access.Token{{}, {Name: "a b", Role: access.Viewer}, {Name: "a", Role: access.Viewer, Expires: time.Unix(1, 0)}} {
		text, err := a.AddToken(t.Context(), token)
		expect.Equal(t, task.CodeOf(err), task.CodeInvalid)
		expect.Equal(t, text, "")
	}
	expect.Equal(t, client.Exists(t.Context(), cfg.Namespace+":tokens", cfg.Namespace+":tokens_used").Val(), 0, "keys")
}
