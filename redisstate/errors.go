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

// ErrTaken says that a task cannot be put because another one has its id.
var ErrTaken = errors.New("another task has this id")

// passing are the replies of a Redis that will be well again by itself or by its operator's hand.
var passing = map[string]string{
	"LOADING":     "it is loading its data",
	"OOM":         "it is full (maxmemory is reached)",
	"READONLY":    "it is a read-only replica",
	"MASTERDOWN":  "it is a replica without its master",
	"CLUSTERDOWN": "its cluster is down",
	"TRYAGAIN":    "its cluster moves keys",
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

// refusal turns an error of the first contact into one that says what to do; nil if err is
// none of those.
func refusal(addr string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	say := func(reason string) error { return &RefusedError{Addr: addr, Reason: reason, Err: err} }
	switch {
	case strings.HasPrefix(text, "WRONGPASS"), strings.Contains(text, "invalid password"):
		return say("the password (or the username) is wrong: see [redis] password")
	case strings.HasPrefix(text, "NOAUTH"):
		return say("it wants a password: see [redis] password")
	case strings.HasPrefix(text, "NOPERM"):
		return say("the user may not do what TDF needs: " + text)
	case strings.Contains(text, "DB index is out of range"), strings.Contains(text, "invalid DB index"):
		return say("it has no database of that number: see [redis] db")
	case strings.Contains(text, "redis: can't parse"), strings.Contains(text, "redis: invalid reply"), strings.Contains(text, "unexpected line"):
		return say("what answers there is not a Redis: see [redis] host and port")
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		return say("TLS: " + text)
	}
	return nil
}
