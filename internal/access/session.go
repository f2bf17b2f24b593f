package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// Bounds of sessions (docs/dashboard.md, "Logging in").
const (
	SessionLife = 7 * 24 * time.Hour
	MaxSessions = 100 // of a token or a user; a further login ends the oldest one
)

// ErrLoggedOut means that a session has ended, or has never existed.
var ErrLoggedOut = task.NewError(task.CodeForbidden, "the session has ended; log in again")

// Holder returns what the log calls the holder of a token: "token NAME", or "user NAME".
func (t *Token) Holder() string {
	if t.User {
		return "user " + t.Name
	}
	return "token " + t.Name
}

// A Session lets a browser do what a token or a user may do, until it expires. It also ends when its token or user is
// removed or gets another secret.
type Session struct {
	Expires task.Time `json:"expires"`
	Of      []byte    `json:"of"` // the digest of the token
}

// NewSession returns a session for the holder of a token that expires after life, and the session's secret text for the
// browser. The time of Redis's clock is now.
func NewSession(t *Token, now task.Time, life time.Duration) (s Session, text string) {
	return Session{now.Add(task.For(life)), t.digest[:]}, strings.Replace(t.Holder(), " ", ".", 1) + "." + rand.Text()
}

// SessionKey returns the holder of a session, such as "token.NAME", and the digest of its secret text. It returns false
// if the text is none of [NewSession].
func SessionKey(text string) (holder, digest string, ok bool) {
	last := strings.LastIndexByte(text, '.')
	kind, name, _ := strings.Cut(text[:max(last, 0)], ".")
	if len(text) > longestText+len("token.") || kind != "token" && kind != "user" || !validName().MatchString(name) {
		return "", "", false
	}
	sum := sha256.Sum256([]byte(text))
	return kind + "." + name, hex.EncodeToString(sum[:]), true
}

// ParseSession reads a session as Redis holds it.
func ParseSession(text string) (s Session, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Session{}, fmt.Errorf("read a session: %w", err)
	}
	return s, nil
}

// Text returns the session as Redis holds it.
func (s Session) Text() string {
	text, _ := json.Marshal(s) // cannot fail: the time is a number
	return string(text)
}

// Lets reports whether the session lets its browser do what a token may do, at the given time of Redis's clock.
func (s Session) Lets(t *Token, now time.Time) bool {
	return subtle.ConstantTimeCompare(s.Of, t.digest[:]) == 1 && t.Holds(now) && now.Before(s.Expires.Std())
}

// User returns the token that stands for a user. The hash of the user's password stands for the secret text of the
// token, so that another password ends the sessions of the user.
func User(name string, role Role, hash string) Token {
	return Token{Name: name, Role: role, User: true, digest: digest(hash)}
}
