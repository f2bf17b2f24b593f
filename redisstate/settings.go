package redisstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// HashMaxListpackValue is the value of Redis's setting hash-max-listpack-value that TDF ships (docs/operations.md, "Redis").
// With it, Redis keeps a task with a short input in its compact encoding, although the log of the task is longer than 64
// bytes, the default of the setting.
const HashMaxListpackValue = 1024

// Setting returns the value of a setting of Redis. It returns "" if Redis has no such setting, or refuses to tell its value:
// the user may have no right to CONFIG GET, and the embedded Redis does not know the command.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var reply *redis.MapStringStringCmd
	err := s.pipeline(ctx, func(p redis.Pipeliner) { reply = p.ConfigGet(ctx, name) })
	if err != nil && (lacksRights(err) || strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "unknown subcommand")) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the setting %s: redis: %w", name, err)
	}
	return reply.Val()[name], nil
}
