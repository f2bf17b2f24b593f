package redisstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A ForbiddenError says that the user's ACL forbids one call, while the user may do what every move of a task needs.
// Waiting does not help; other calls work (docs/guarantees.md, "Every call may be sent twice").
type ForbiddenError struct {
	Addr string
	Err  error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("redis at %s: the user's ACL forbids a command: %v; grant it (docs/operations.md)", e.Addr, e.Err)
}

func (e *ForbiddenError) Unwrap() error { return e.Err }

// lacksRights reports whether err is a reply to a user whose ACL forbids a command or a key.
func lacksRights(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && noRights(reply.Error())
}

// noRights knows the replies to a user whose ACL forbids a command, also one inside a script.
func noRights(reply string) bool {
	return strings.HasPrefix(reply, "NOPERM") || strings.Contains(reply, "The user executing the script can't") ||
		strings.Contains(reply, "ACL failure in script")
}

// canMoveTasks asks Redis whether the user may still do what every move of a task needs, so that a missing right concerns
// one call and not the whole connection. A client that has moved no task is asked for less: its user may only read.
func (s *Store) canMoveTasks(ctx context.Context) bool {
	writes := ""
	if s.taskMoved.Load() {
		writes = "1"
	}
	err := s.scripts.rights.Run(ctx, s.rdb, []string{s.keys.Due(), s.keys.calls(s.boot)}, writes).Err()
	_, passes := outage(err)
	return !passes && !lacksRights(err) && ctx.Err() == nil && refusal(s.addr, err) == nil
}
