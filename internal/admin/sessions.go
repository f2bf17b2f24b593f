package admin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
)

// OpenSession begins a session, with which a browser may do what the token or the user may do. It returns the secret
// text of the session, of which Redis holds only a digest. A session ends after [access.SessionLife].
func (a *Admin) OpenSession(ctx context.Context, t access.Token) (text string, err error) {
	now, err := a.redis().Now(ctx)
	if err != nil {
		return "", err
	}
	s, text := access.NewSession(&t, now, access.SessionLife)
	holder, digest, _ := access.SessionKey(text)
	return text, a.redis().Accounts.AddSession(ctx, holder, digest, s, now)
}

// Session returns the token of a session with a secret text. The function user returns the token that stands for a user
// (see [access.User]), or false if there is no such user. Session asks Redis each time, so that it refuses a session at
// once whose token was revoked. If there is no valid session, the error is [access.ErrLoggedOut].
func (a *Admin) Session(ctx context.Context, text string, user func(name string) (access.Token, bool)) (access.Token,
	error,
) {
	holder, digest, ok := access.SessionKey(text)
	if !ok {
		return access.Token{}, access.ErrLoggedOut
	}
	s, now, err := a.redis().Accounts.Session(ctx, holder, digest)
	if err != nil {
		return access.Token{}, err
	}
	return a.holder(ctx, holder, s, now, user)
}

// holder returns the token of a holder if a session lets its browser use it.
func (a *Admin) holder(ctx context.Context, holder string, s access.Session, now task.Time,
	user func(name string) (access.Token, bool),
) (access.Token, error) {
	kind, name, _ := strings.Cut(holder, ".")
	if kind == "user" {
		if t, ok := user(name); ok && s.Lets(&t, now.Std()) {
			return t, nil
		}
		return access.Token{}, access.ErrLoggedOut
	}
	t, err := a.login(ctx, name, s.Lets)
	if errors.Is(err, access.ErrDenied) {
		err = access.ErrLoggedOut
	}
	return t, err
}

// EndSession ends a session.
func (a *Admin) EndSession(ctx context.Context, text string) error {
	holder, digest, ok := access.SessionKey(text)
	if !ok {
		return nil
	}
	return a.redis().Accounts.RemoveSession(ctx, holder, digest)
}

// AddLogin returns a secret text with which one browser may log in once, with the rights of a token. It is worthless
// after its life, which is above 0, and when the token is revoked. The error is [access.ErrDenied] if there is no such
// token.
func (a *Admin) AddLogin(ctx context.Context, token string, life time.Duration) (text string, err error) {
	t, now, err := a.redis().Accounts.Token(ctx, token)
	if errors.Is(err, access.ErrNoToken) {
		err = access.ErrDenied
	}
	if err != nil {
		return "", err
	}
	s, text := access.NewSession(&t, now, life)
	_, digest, _ := access.SessionKey(text)
	return text, a.redis().Accounts.AddLogin(ctx, digest, s, life)
}

// UseLogin returns the token of a login. The login is worthless from then on. If it is unknown, used or expired, the
// error is [access.ErrLoggedOut].
func (a *Admin) UseLogin(ctx context.Context, text string) (access.Token, error) {
	holder, digest, ok := access.SessionKey(text)
	if !ok {
		return access.Token{}, access.ErrLoggedOut
	}
	s, err := a.redis().Accounts.TakeLogin(ctx, digest)
	if err != nil {
		return access.Token{}, err
	}
	return a.holder(ctx, holder, s, 0, func(string) (access.Token, bool) { return access.Token{}, false })
}
