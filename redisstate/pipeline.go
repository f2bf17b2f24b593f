package redisstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// bestEffort makes writes that are safe to repeat and safe to lose, such as heartbeats. It also works on a full Redis,
// because live components would otherwise seem to be gone.
func (s *Store) bestEffort(ctx context.Context, fill func(redis.Pipeliner)) error {
	p := s.rdb.Pipeline()
	fill(p)
	var keys []string
	var args []any
	for _, c := range p.Cmds() {
		words := c.Args() // the command, its key, and the other arguments
		keys = append(keys, fmt.Sprint(words[1]))
		args = append(append(args, words[0], len(words)-2), words[2:]...)
	}
	_, err := s.run(ctx, bestEffortScript, keys, args, anything)
	if err == redis.Nil { // the script returns nothing
		return nil
	}
	return err
}

// pipeline sends several commands together. Each command must only read, or must be safe to repeat.
func (s *Store) pipeline(ctx context.Context, fill func(redis.Pipeliner)) error {
	return s.untilAnswered(ctx, func(ctx context.Context) error {
		p := s.rdb.Pipeline()
		if fill(p); p.Len() == 0 {
			return nil
		}
		commands, _ := p.Exec(ctx)
		for _, c := range commands {
			if err := c.Err(); err != nil && err != redis.Nil && !isWrongType(err) {
				return err
			}
		}
		return nil
	})
}

// isWrongType reports whether err means that the key has a wrong Redis type, because another program has written it.
// Callers treat the key as missing.
func isWrongType(err error) bool { return strings.HasPrefix(err.Error(), "WRONGTYPE") }
