package redisstate

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// HashMaxListpackValue is the value of Redis's setting hash-max-listpack-value that TDF ships (docs/operations.md, "Redis").
// With it, Redis keeps a task with a short input in its compact encoding, although the log of the task is longer than 64
// bytes, the default of the setting.
const HashMaxListpackValue = 1024

const listpackSetting = "hash-max-listpack-value"

// SmallListpack returns the value of Redis's setting hash-max-listpack-value if it is less than [HashMaxListpackValue]. Then
// Redis needs about twice as much memory for a task. If the setting is large enough or unknown, SmallListpack returns "".
func (s *Store) SmallListpack(ctx context.Context) (string, error) {
	value, err := s.setting(ctx, listpackSetting)
	if n, wrong := strconv.ParseInt(value, 10, 64); wrong != nil || n >= HashMaxListpackValue {
		return "", err
	}
	return value, nil
}

// setting returns the value of a setting of Redis. It returns "" if Redis has no such setting, or refuses to tell its value:
// the user may have no right to CONFIG GET, and the embedded Redis does not know the command.
func (s *Store) setting(ctx context.Context, name string) (string, error) {
	var reply *redis.MapStringStringCmd
	err := s.Pipeline(ctx, "read the setting "+name, func(p redis.Pipeliner) { reply = p.ConfigGet(ctx, name) })
	if err != nil && (conn.LacksRights(err) || strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "unknown subcommand")) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return reply.Val()[name], nil
}
