package redisstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// A RefusedError says that Redis is there but cannot be used as it is, and that waiting
// will not help: the password is wrong, the database does not exist, what answers is no
// Redis, the namespace belongs to somebody else.
type RefusedError struct {
	Addr   string
	Reason string
	Err    error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("redis at %s: %s", e.Addr, e.Reason) }

func (e *RefusedError) Unwrap() error { return e.Err }

// ErrFull says that Redis has reached its maxmemory and takes no new tasks. What is there
// can still be finished and archived.
var ErrFull = errors.New("redis is full (maxmemory is reached), and takes nothing new; archive and remove finished tasks, or raise maxmemory")

// ErrGroupTaken says that a group that was to be new has tasks.
var ErrGroupTaken = errors.New("the group has tasks already")

// ErrIDTaken says that a task cannot be put because another one has its id.
var ErrIDTaken = errors.New("another task has this id")

// passing are the replies of a Redis that will be well again by itself or by its operator's hand.
var passing = map[string]string{
	"LOADING":     "it is loading its data",
	"OOM":         "it is full (maxmemory is reached)",
	"READONLY":    "it is a read-only replica",
	"MASTERDOWN":  "it is a replica without its master",
	"CLUSTERDOWN": "its cluster is down",
	"TRYAGAIN":    "its cluster moves keys",
	"MOVED":       "its cluster has moved the keys to another node",
	"ASK":         "its cluster is moving the keys to another node",
	"BUSY":        "it is busy with a script",
	"MISCONF":     "it cannot write to its disk",
	"NOREPLICAS":  "it has too few replicas",
}

const tooManyClients = "ERR max number of clients reached"

// outage reports whether err will pass by itself, and in what words that is told.
func outage(err error) (why string, passes bool) {
	var opErr net.Error
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil), errors.Is(err, redis.ErrClosed), errors.Is(err, context.Canceled):
		return "", false
	case errors.As(err, &reply):
		word, _, _ := strings.Cut(reply.Error(), " ")
		if strings.HasPrefix(reply.Error(), tooManyClients) {
			return "it has no room for one more client (maxclients)", true
		}
		why, passes = passing[word]
		return why, passes
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused)", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it closed the connection", true
	case errors.As(err, &opErr) && opErr.Timeout(), errors.Is(err, redis.ErrPoolTimeout):
		return "it does not answer in time", true
	case errors.As(err, &opErr):
		return opErr.Error(), true
	}
	return "", false
}

// refusal turns an error of the whole connection that only an operator can repair into one that says what to do; nil if
// err is no such error. It ends a first contact; later it is an outage (see [Store.outage]).
func refusal(addr string, err error) error {
	if err == nil {
		return nil
	}
	say := func(reason string) error { return &RefusedError{Addr: addr, Reason: reason, Err: err} }
	var reply redis.Error
	if errors.As(err, &reply) {
		if reason := refusedBy(reply.Error()); reason != "" {
			return say(reason)
		}
		return nil
	}
	switch text := err.Error(); {
	case strings.Contains(text, "redis: can't parse"), strings.Contains(text, "redis: invalid reply"), strings.Contains(text, "unexpected line"):
		return say("what answers there is not a Redis: see [redis] host and port")
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		return say("TLS: " + text)
	}
	return nil
}

// refusedBy says what to do about a reply with which Redis refuses all that this client sends; "" for any other reply.
func refusedBy(reply string) string {
	has := func(part string) bool { return strings.Contains(reply, part) }
	switch word, _, _ := strings.Cut(reply, " "); {
	case word == "WRONGPASS", has("invalid password"):
		return "the password (or the username) is wrong: see [redis] password"
	case word == "NOAUTH", has("unauthenticated bulk length"), has("unauthenticated multibulk length"):
		return "it wants a password: see [redis] password"
	case has("without any password configured"), has("no password is set"):
		return "it has no password, and the configuration gives one: see [redis] password"
	case noRights(reply):
		return "the user may not do what TDF needs: " + reply
	case word == "DENIED":
		return "it accepts no connections from other machines: set a password, or protected-mode no"
	case has("DB index is out of range"), has("invalid DB index"):
		return "it has no database of that number: see [redis] db"
	}
	return ""
}

// outage reports whether a call waits until err is over, and how the log names it. Before the first contact a refusal is
// an answer: a wrong password ends the start. Afterwards the same Redis has served this client, so that a refusal of the
// whole connection is an outage like any other, and whoever holds a result goes on holding it
// (docs/guarantees.md, "Every call may be sent twice"). A missing right counts as an outage only once a script has
// worked: with too few rights from the beginning, waiting would hide a wrong configuration. [Store.untilAnswered] also asks
// whether the right concerns more than this call.
func (s *Store) outage(err error) (why string, passes bool) {
	if why, passes = outage(err); passes || !s.connected.Load() {
		return why, passes
	}
	var refused *RefusedError
	if !errors.As(refusal(s.addr, err), &refused) {
		return "", false
	}
	if lacksRights(err) && !s.scriptWorked.Load() {
		return "", false
	}
	return refused.Reason, true
}

// An UnstorableError says that Redis refuses a call because of what it would store, and will refuse it again: a value is
// larger than it accepts. Without that, the call may succeed.
type UnstorableError struct {
	Reason string
	Err    error
}

func (e *UnstorableError) Error() string { return "redis cannot store this: " + e.Reason }

func (e *UnstorableError) Unwrap() error { return e.Err }

// unstorable returns an *[UnstorableError] for a reply that says so, and any other error as it is.
func unstorable(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	if text := reply.Error(); strings.Contains(text, "invalid bulk length") || strings.Contains(text, "string exceeds maximum allowed size") {
		return &UnstorableError{"a value is larger than its proto-max-bulk-len allows", err}
	}
	return err
}
