package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
)

// Bounds of tokens.
const (
	MaxTokens = 1000 // of a namespace
	MaxQueues = 100  // of a token
)

// UseStep is the resolution of Token.LastUse: Redis stores at most one use of a token in this time.
const UseStep = time.Minute

// A Token describes a secret text that stands for a role. It does not contain the text, which only [New] returns.
type Token struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	// if empty, all queues; [class.DefaultQueue] is the queue of tasks without a queue
	Queues  []string  `json:"queues,omitempty"`
	Created time.Time `json:"created"`           // by Redis's clock, as all times of a token
	Expires time.Time `json:"expires,omitzero"`  // zero: never
	LastUse time.Time `json:"last_use,omitzero"` // zero: never used

	User bool `json:"-"` // the holder is a user, who has a password instead of a token ([User])

	digest [sha256.Size]byte
}

// An InvalidError means that a token cannot be added, because its name, role, queues or expiry is invalid.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return "invalid token: " + e.Reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*InvalidError) Code() task.Code { return task.CodeInvalid }

// Errors of calls with tokens.
var (
	ErrDenied  = task.NewError(task.CodeForbidden, "the token is unknown, revoked or expired")
	ErrNoToken = task.NewError(task.CodeNotFound, "no token has this name")
	ErrTaken   = task.NewError(task.CodeTaken, "another token has this name; remove it first, or use another name")
	ErrTooMany = task.NewError(task.CodeFull, fmt.Sprintf("the namespace has %d tokens; remove some", MaxTokens))
	validName  = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// reserved are names that no token or user may have. The campaigns of their tasks would begin with the names of
// campaigns that contain tasks of all owners (docs/tdf.md, "Tokens").
var reserved = []string{"skuld", "taskmaster", "taskstore"}

// prefix is the beginning of each token, so that people and scanners recognize a token in a file.
const prefix = "tdf_"

// longestText bounds the work on texts of clients. It is above the length of every token: the prefix, a name, and what
// [rand.Text] returns.
const longestText = 128

// Check returns an *[InvalidError] if no token has these properties.
func (t *Token) Check() error {
	rights := t.Role.Rights()
	switch {
	case !validName().MatchString(t.Name):
		return &InvalidError{fmt.Sprintf("name %.100q: want 1 to 64 letters, digits, dots, hyphens and underscores, "+
			"with a letter or a digit first", t.Name)}
	case slices.Contains(reserved, t.Name):
		return &InvalidError{fmt.Sprintf("name %q: an interface uses it for campaigns of all tokens", t.Name)}
	case !t.Role.known():
		return &InvalidError{fmt.Sprintf("role %.100q: want %s", t.Role, roleNames())}
	case len(t.Queues) > 0 && !rights.Queues:
		return &InvalidError{fmt.Sprintf("queues for the role %s, which %s", t.Role, rights.Text)}
	case len(t.Queues) > MaxQueues:
		return &InvalidError{fmt.Sprintf("%d queues; want at most %d", len(t.Queues), MaxQueues)}
	case !t.Expires.IsZero() && !t.Expires.After(t.Created):
		return &InvalidError{"it would expire at once"}
	}
	for _, queue := range t.Queues {
		if err := (task.Pausable{Queue: queue}).Check(); queue == "" || err != nil {
			return &InvalidError{fmt.Sprintf("queue %.100q", queue)}
		}
	}
	return nil
}

// New gives a token a new secret text, and returns this text. Nobody can read the text again: the token holds only its
// digest.
func New(t Token) (Token, string, error) {
	if err := t.Check(); err != nil {
		return Token{}, "", err
	}
	if task.At(t.Expires) == task.Never {
		t.Expires = time.Time{}
	}
	text := prefix + t.Name + "_" + rand.Text()
	t.digest = digest(text)
	return t, text, nil
}

// digest needs no salt and no slow hash, because a text has 130 random bits.
func digest(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// NameIn returns the name in the text of a token. It returns "" if the text cannot be a token.
func NameIn(text string) string {
	rest, ok := strings.CutPrefix(text, prefix)
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 || len(text) > longestText || !validName().MatchString(rest[:i]) {
		return ""
	}
	return rest[:i]
}

// Accepts reports whether the text is the secret text of the token, and the token has not expired at the given time.
// How long the comparison takes says nothing about the text.
func (t *Token) Accepts(text string, now time.Time) bool {
	given := digest(text)
	return subtle.ConstantTimeCompare(given[:], t.digest[:]) == 1 && t.Holds(now)
}

// Same reports whether two tokens have the same secret text. A new token with the name of a removed one has another
// text.
func (t *Token) Same(other *Token) bool { return t.digest == other.digest }

// Holds reports whether the token has not expired at the given time.
func (t *Token) Holds(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// record is the form of a token in Redis.
type record struct {
	Role    Role      `json:"role"`
	Digest  []byte    `json:"sha256"`
	Created task.Time `json:"created"`
	Expires task.Time `json:"expires,omitempty"`
	Queues  []string  `json:"queues,omitempty"`
}

// Text returns the token as Redis holds it, without its name and its last use.
func (t *Token) Text() string {
	// cannot fail: all times are numbers
	text, _ := json.Marshal(record{t.Role, t.digest[:], task.At(t.Created), task.At(t.Expires), t.Queues})
	return string(text)
}

// Parse reads a token as Redis holds it. The error means that TDF does not write such a token; nobody may use it.
func Parse(name, text string) (Token, error) {
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Token{}, fmt.Errorf("read token %.100q: %w", name, err)
	}
	t := Token{Name: name, Role: r.Role, Queues: r.Queues, Created: r.Created.Std(), Expires: r.Expires.Std()}
	if len(r.Digest) != len(t.digest) {
		return Token{}, fmt.Errorf("read token %.100q: its digest has %d bytes", name, len(r.Digest))
	}
	copy(t.digest[:], r.Digest)
	return t, t.Check()
}
