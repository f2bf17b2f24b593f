package conn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A ForbiddenError means that the ACL of the Redis user forbids a call, but allows the commands that move tasks.
// Waiting does not help. Other calls still work (docs/guarantees.md, "Every call may be sent twice").
type ForbiddenError struct {
	Addr string
	Err  error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("redis at %s: the user's ACL forbids a command: %v; grant the right to use it (docs/operations.md)", e.Addr, e.Err)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*ForbiddenError) Code() tdf.Code { return tdf.CodeForbidden }

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
	err := s.Script(lua.Rights).Run(ctx, s.Redis, []string{s.Keys.Due(), s.Keys.Calls(s.boot)}, writes).Err()
	_, passes := outage(err)
	return !passes && !LacksRights(err) && ctx.Err() == nil && refusal(s.Addr, err) == nil
}
