package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A RefusedError means that Redis answers but TDF cannot use it. Waiting does not help. Examples are a wrong password,
// a database that does not exist, a server that is not Redis, and a namespace of another program.
type RefusedError struct {
	Addr   string
	Reason string
	Err    error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("redis at %s: %s", e.Addr, e.Reason) }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*RefusedError) Code() task.Code { return task.CodeRefused }

func (e *RefusedError) Unwrap() error { return e.Err }

// A WaitingError means that Redis has answered, but could not be used until the time for the first answer was over.
type WaitingError struct {
	Addr  string
	Reply string // the last answer of Redis
	Err   error  // why the wait ended
}

func (e *WaitingError) Error() string {
	return fmt.Sprintf("redis at %s cannot be used: %s", e.Addr, e.Reply)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*WaitingError) Code() task.Code { return task.CodeUnavailable }

func (e *WaitingError) Unwrap() error { return e.Err }

// ErrFull means that Redis has reached its maxmemory and accepts no new tasks. Workers can still finish running tasks,
// and managers can still archive finished ones.
var ErrFull = task.NewError(task.CodeFull, "redis is full (maxmemory is reached) and accepts no new data; archive and "+
	"remove finished tasks, or raise maxmemory")

// passing contains the first words of error replies that count as an outage, with a description of the outage. Such an
// outage passes by itself, or after an operator has repaired Redis.
var passing = map[string]string{
	"LOADING":     "it is loading its data",
	"OOM":         "it is full (maxmemory is reached)",
	"READONLY":    "it is a read-only replica",
	"MASTERDOWN":  "it is a replica without its master",
	"CLUSTERDOWN": "its cluster is down",
	"TRYAGAIN":    "its cluster is moving some of the keys",
	"MOVED":       "its cluster has moved the keys to another node",
	"ASK":         "its cluster is moving the keys to another node",
	"BUSY":        "it is busy with a script",
	"MISCONF":     "it cannot write to its disk",
	"NOREPLICAS":  "it has too few replicas",
	"UNBLOCKED":   "it has become a replica", // while replicas confirmed a write, or a list was empty
}

const (
	tooManyClients = "ERR max number of clients reached"
	waitAtReplica  = "ERR WAIT cannot be used with replica instances" // since Redis 7.2
	notInSlot      = "Script attempted to access a non local key in a cluster node"
)

// outage reports whether err counts as an outage of Redis. It also describes err for the log.
func outage(err error) (why string, passes bool) {
	if err == nil { // most calls succeed, and each of these variables would be an allocation
		return "", false
	}
	var opErr net.Error
	var reply redis.Error
	var answer *answerError
	var unknown *UnknownError
	switch {
	case errors.As(err, &unknown):
		return "too few replicas confirm its writes", unknown.repeated
	case errors.Is(err, redis.Nil), errors.Is(err, redis.ErrClosed), errors.Is(err, context.Canceled):
		return "", false
	case errors.As(err, &reply):
		word, _, _ := strings.Cut(reply.Error(), " ")
		if strings.HasPrefix(reply.Error(), tooManyClients) {
			return "it has too many clients (maxclients)", true
		}
		if strings.HasPrefix(reply.Error(), waitAtReplica) {
			return passing["UNBLOCKED"], true
		}
		if strings.Contains(reply.Error(), notInSlot) { // a script was so slow that its slot has moved meanwhile
			return passing["MOVED"], true
		}
		why, passes = passing[word]
		return why, passes
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused)", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return "it closed the connection", true
	case errors.As(err, &opErr) && opErr.Timeout(), errors.Is(err, redis.ErrPoolTimeout):
		return "it does not answer in time", true
	case strings.Contains(err.Error(), "tls:"):
		return "", false // see refusal
	case errors.As(err, &opErr):
		return opErr.Error(), true
	case errors.Is(err, errStale):
		return err.Error(), true
	case errors.As(err, &answer):
		return answer.reason, !answer.notRedis
	// go-redis cannot read the answer.
	case strings.HasPrefix(err.Error(), "redis: "), errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		return "it gave an unexpected answer", true
	}
	return "", false
}

// refusal returns a *[RefusedError] for an error that every call of this client would get, and whose cause only an
// operator can repair. It returns nil for any other error. A client that is refused at its start gives up. Later, the
// same refusal counts as an outage (see [Conn.outage]).
func refusal(addr string, err error) error {
	if err == nil {
		return nil
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return refused
	}
	say := func(reason string) error { return &RefusedError{Addr: addr, Reason: reason, Err: err} }
	var reply redis.Error
	if errors.As(err, &reply) {
		reason := refusedBy(reply.Error())
		if reason == noPassword && isLoopback(addr) {
			reason += passwordOfUp
		}
		if reason != "" {
			return say(reason)
		}
		return nil
	}
	var answer *answerError
	switch text := err.Error(); {
	case errors.As(err, &answer) && answer.notRedis:
		return say("the server at this address is not a Redis: see [redis] host and port")
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		for part, keys := range tlsKeys {
			if strings.Contains(text, part) {
				text += ": see [redis] " + keys
			}
		}
		return say("TLS: " + text)
	}
	return nil
}

// tlsKeys has the keys of the configuration that repair errors of TLS.
var tlsKeys = map[string]string{
	"certificate required": "tls_cert and tls_key",
	"unknown authority":    "tls_ca",
	"certificate is valid": "tls_server_name",
}

const (
	noPassword   = "it requires a password: see [redis] password"
	passwordOfUp = ". If tdf up runs it, run this command as its user, with the same HOME, XDG_CONFIG_HOME and TMPDIR: " +
		"tdf up keeps the password in a file there"
)

func isLoopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

const (
	inCluster  = "it is a node of a Redis Cluster: name nodes in [redis] cluster, without host, port and db"
	notCluster = "it is not in cluster mode: set [redis] host and port instead of cluster"
)

// refusedBy returns the reason for a reply with which Redis refuses every call of this client. The reason also says how
// to fix the cause. For any other reply, refusedBy returns "".
func refusedBy(reply string) string {
	has := func(part string) bool { return strings.Contains(reply, part) }
	switch word, _, _ := strings.Cut(reply, " "); {
	case word == "WRONGPASS", has("invalid password"):
		return "the password (or the username) is wrong: see [redis] password"
	case word == "NOAUTH", has("unauthenticated bulk length"), has("unauthenticated multibulk length"):
		return noPassword
	case has("without any password configured"), has("no password is set"):
		return "it has no password, but the configuration has one: see [redis] password"
	case noRights(reply):
		return "the user lacks a right that TDF needs: " + reply
	case word == "DENIED":
		return "it accepts no connections from other machines: set a password, or protected-mode no"
	case has("not allowed in cluster mode"):
		return inCluster
	case has("DB index is out of range"), has("invalid DB index"):
		return "it has no database with this number: see [redis] db"
	}
	return ""
}

// outage reports whether a call must wait and try again after err. It also describes err for the log.
//
// Until the first check of Redis succeeds, a refusal is final: for example, a client with a wrong password does not
// start. Afterwards, a refusal of the whole connection counts as an outage, because Redis has accepted this client
// before. So a worker keeps its results (docs/guarantees.md, "Every call may be sent twice").
//
// A missing right counts as an outage only after a script has worked. If the user has had too few rights from the
// beginning, waiting would hide a wrong configuration. The method [Conn.UntilAnswered] also checks whether only this
// call needs the right.
func (s *Conn) outage(err error) (why string, passes bool) {
	why, passes = outage(err)
	if err == nil || passes || !s.connected.Load() {
		return why, passes
	}
	var refused *RefusedError
	if !errors.As(refusal(s.Addr, err), &refused) {
		return "", false
	}
	if LacksRights(err) && !s.scriptWorked.Load() {
		return "", false
	}
	return refused.Reason, true
}

// An UnstorableError means that Redis refuses a call because it contains a value that is too large. Repeating the call
// does not help. Without that value, the call may succeed.
type UnstorableError struct {
	Reason string
	Err    error
}

// Unstorable makes it a broker.Unstorable.
func (*UnstorableError) Unstorable() {}

func (e *UnstorableError) Error() string { return "redis cannot store this: " + e.Reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*UnstorableError) Code() task.Code { return task.CodeFull }

func (e *UnstorableError) Unwrap() error { return e.Err }

// Unstorable returns an *[UnstorableError] for a reply that refuses a value, and any other error unchanged.
func Unstorable(err error) error {
	if err == nil {
		return nil
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	if text := reply.Error(); strings.Contains(text, "invalid bulk length") ||
		strings.Contains(text, "string exceeds maximum allowed size") {
		return &UnstorableError{"a value is larger than Redis allows (proto-max-bulk-len)", err}
	}
	return err
}

// A ForbiddenError means that the ACL of the Redis user forbids a call, but allows the commands that move tasks.
// Waiting does not help. Other calls still work (docs/guarantees.md, "Every call may be sent twice").
type ForbiddenError struct {
	Addr string
	Err  error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("redis at %s: the user's ACL forbids a command: %v; grant the right to use it "+
		"(docs/operations.md)", e.Addr, e.Err)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*ForbiddenError) Code() task.Code { return task.CodeForbidden }

func (e *ForbiddenError) Unwrap() error { return e.Err }

// LacksRights reports whether err is a reply that the user's ACL forbids a command or a key.
func LacksRights(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && noRights(reply.Error())
}

// noRights reports whether a reply says that the user's ACL forbids a command. The command may have been inside a
// script.
func noRights(reply string) bool {
	return strings.HasPrefix(reply, "NOPERM") || strings.Contains(reply, "The user executing the script can't") ||
		strings.Contains(reply, "ACL failure in script")
}

// canMoveTasks reports whether the user may still run all commands that move tasks. If so, only the failed call needs
// the missing right. If this client has never moved a task, canMoveTasks tries only the commands that read, because the
// user may have no right to write.
func (s *Conn) canMoveTasks(ctx context.Context) bool {
	writes := ""
	if s.taskMoved.Load() {
		writes = "1"
	}
	err := s.tryRights(ctx, writes).Err()
	_, passes := outage(err)
	return !passes && !LacksRights(err) && ctx.Err() == nil && refusal(s.Addr, err) == nil
}

func (s *Conn) tryRights(ctx context.Context, which string) *redis.Cmd {
	keys := s.ScriptKeys([]string{s.Keys.Due(), s.Keys.Calls(s.boot), s.Keys.Rights()})
	return s.Script(lua.Rights).Run(ctx, s.Redis, keys, which)
}

// CheckRights returns a *[RefusedError] that names the commands to which the user lacks the right, although servers and
// workers need them. Commands that only some calls need, such as SCAN, are not among them.
func (s *Conn) CheckRights(ctx context.Context) error {
	var lacks []string
	err := s.UntilAnswered(ctx, func(ctx context.Context) (err error) {
		lacks, err = s.tryRights(ctx, "all").StringSlice()
		return err
	})
	if err != nil || len(lacks) == 0 {
		return Failed("check the rights of the user of Redis", err)
	}
	return &RefusedError{Addr: s.at(), Reason: fmt.Sprintf("the user lacks the rights to %s; grant them (+%s): see "+
		"docs/operations.md, \"Redis\"", strings.Join(lacks, ", "), strings.ToLower(strings.Join(lacks, " +")))}
}
