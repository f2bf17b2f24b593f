package admin

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
)

// AddToken adds a token, and returns its secret text. Redis holds only a digest of the text, so nobody can read the
// text again. AddToken sets Created. If Expires is the zero time, the token never expires.
//
// The error is an *[access.InvalidError] if the token is invalid. It wraps [access.ErrTaken] if another token has the
// name, and [access.ErrTooMany] if the namespace has too many tokens.
func (a *Admin) AddToken(ctx context.Context, t access.Token) (text string, err error) {
	now, err := a.redis().Now(ctx)
	if err != nil {
		return "", err
	}
	t.Created = now.Std()
	t, text, err = access.New(t)
	if err != nil {
		return "", err
	}
	err = a.redis().Accounts.AddToken(ctx, t)
	if err != nil && task.CodeOf(err) != task.CodeUnknown { // otherwise the token may exist, and nobody else has its text
		return "", err
	}
	return text, err
}

// RotateToken gives a token a new secret text, and returns it. From then on, Authenticate refuses the old text. The
// role, the queues, the time of the end and the tasks of the token stay. If there is no such token, the error wraps
// [access.ErrNoToken].
func (a *Admin) RotateToken(ctx context.Context, name string) (t access.Token, text string, err error) {
	old, now, err := a.redis().Accounts.Token(ctx, name)
	if err != nil {
		return t, "", err
	}
	t = old
	t.Created, t.LastUse = now.Std(), time.Time{}
	t, text, err = access.New(t)
	if err != nil {
		return t, "", err
	}
	return t, text, a.redis().Accounts.ReplaceToken(ctx, old, t)
}

// Tokens returns all tokens, ordered by name. Expired tokens stay until they are removed.
func (a *Admin) Tokens(ctx context.Context) ([]access.Token, error) {
	return a.redis().Accounts.Tokens(ctx)
}

// RemoveToken revokes a token. From then on, Authenticate refuses it. If there is no such token, the error wraps
// [access.ErrNoToken].
func (a *Admin) RemoveToken(ctx context.Context, name string) error {
	return a.redis().Accounts.RemoveToken(ctx, name)
}

// Authenticate returns the token with a secret text. It asks Redis each time, so that a revoked token is refused at
// once. If no valid token has the text, the error is [access.ErrDenied].
func (a *Admin) Authenticate(ctx context.Context, text string) (access.Token, error) {
	return a.login(ctx, access.NameIn(text), func(t *access.Token, now time.Time) bool { return t.Accepts(text, now) })
}

// AuthenticateName returns the token with a name. The caller must have checked by other means that the client may use
// it, for example by the client's certificate. If there is no such token, or it has expired, the error is
// [access.ErrDenied].
func (a *Admin) AuthenticateName(ctx context.Context, name string) (access.Token, error) {
	return a.login(ctx, name, (*access.Token).Holds)
}

func (a *Admin) login(ctx context.Context, name string, accepts func(*access.Token, time.Time) bool) (access.Token,
	error,
) {
	if name == "" {
		return access.Token{}, access.ErrDenied
	}
	t, now, err := a.redis().Accounts.Token(ctx, name)
	switch {
	case errors.Is(err, access.ErrNoToken):
		return access.Token{}, access.ErrDenied
	case err != nil:
		return access.Token{}, err
	case !accepts(&t, now.Std()):
		return access.Token{}, access.ErrDenied
	}
	if now.Sub(task.At(t.LastUse)) >= task.For(access.UseStep) {
		if err := a.redis().Accounts.NoteTokenUse(ctx, name, now); err != nil {
			a.parts.Log.Debug("did not record the use of a token", "error", err)
		}
	}
	return t, nil
}
