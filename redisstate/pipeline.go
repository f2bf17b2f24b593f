package redisstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// note writes what nobody's work depends on, such as who is there, also where Redis is full: who
// looks would else take the living for gone. All of it may be written twice.
func (s *Store) bestEffort(ctx context.Context, fill func(redis.Pipeliner)) error {
	p := s.rdb.Pipeline()
	fill(p)
	var keys []string
	var args []any
	for _, c := range p.Cmds() {
		words := c.Args() // the command, its key, what follows
		keys = append(keys, fmt.Sprint(words[1]))
		args = append(append(args, words[0], len(words)-2), words[2:]...)
	}
	_, err := s.run(ctx, s.scripts.bestEffort, keys, args)
	if err == redis.Nil { // it answers nothing
		return nil
	}
	return err
}

// pipeline sends reads, or writes that may be repeated, in one go.
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

// isWrongType: somebody put another kind of key where a task should be. To a reader it is not there.
func isWrongType(err error) bool { return strings.HasPrefix(err.Error(), "WRONGTYPE") }
