package conn

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/lua"
)

// BestEffort makes writes that are safe to repeat and safe to lose, such as heartbeats. It also works on a full Redis,
// because live components would otherwise seem to be gone.
func (s *Conn) BestEffort(ctx context.Context, doing string, fill func(redis.Pipeliner)) error {
	return s.Write(Unacknowledged(ctx), doing, fill)
}

// Write makes writes that are safe to repeat, in one step. It also works on a full Redis.
func (s *Conn) Write(ctx context.Context, doing string, fill func(redis.Pipeliner)) error {
	p := s.Redis.Pipeline()
	fill(p)
	var keys []string
	var args []any
	for _, c := range p.Cmds() {
		words := c.Args() // the command, its key, and the other arguments
		keys = append(keys, fmt.Sprint(words[1]))
		args = append(append(args, words[0], len(words)-2), words[2:]...)
	}
	_, err := s.Run(ctx, doing, lua.Write, keys, args, Anything)
	return err
}

// Ask sends one command, which must be safe to repeat. It returns the result of the command, or the zero value if the
// key does not exist. The error says what the call was doing.
func Ask[T any, C interface {
	redis.Cmder
	Result() (T, error)
}](ctx context.Context, s *Conn, doing string, command func(redis.Cmdable) C) (result T, err error) {
	read := func(c redis.Cmder) (err error) {
		if result, err = c.(C).Result(); err == redis.Nil {
			err = nil
		}
		return err
	}
	if s.replicasOf(ctx) == nil {
		err = s.UntilAnswered(ctx, func(context.Context) error { return read(command(s.Redis)) })
	} else {
		err = s.Send(ctx, func(p redis.Pipeliner) { command(p) }, read)
	}
	return result, Failed(doing, err)
}

// AskEach sends a command for each element, all of them together, and returns the commands with their results. It is
// for the same commands as Pipeline. If command returns nil, the element needs none.
func AskEach[E any, C redis.Cmder](
	ctx context.Context, s *Conn, doing string, of []E, command func(p redis.Pipeliner, e E) C,
) ([]C, error) {
	commands := make([]C, len(of))
	err := s.Pipeline(ctx, doing, func(p redis.Pipeliner) {
		for i, e := range of {
			commands[i] = command(p, e)
		}
	})
	if err != nil {
		return nil, err
	}
	return commands, nil
}

// Scan reads a page of SCAN, HSCAN or ZSCAN. It returns the cursor of the next page, or 0 at the end.
func (s *Conn) Scan(ctx context.Context, doing string, command func(redis.Cmdable) *redis.ScanCmd) (page []string,
	next uint64, err error,
) {
	err = s.UntilAnswered(ctx, func(context.Context) (err error) {
		page, next, err = command(s.Redis).Result()
		return err
	})
	return page, next, Failed(doing, err)
}

// MayNotScan reports whether an error means that the user of Redis lacks the right to scan keys. The log says so once.
func (s *Conn) MayNotScan(err error) bool {
	if !LacksRights(err) {
		return false
	}
	if !s.scanRefused.Swap(true) {
		s.Log.Warn("redis refuses SCAN; tasks in no list are left out", "error", err)
	}
	return true
}

// ScanRefused reports whether MayNotScan has returned true before. Walks through all tasks may then leave out tasks.
func (s *Conn) ScanRefused() bool { return s.scanRefused.Load() }

// EachField passes the fields of a hash to a function, until it returns false. It reads a page at a time, so that a
// long hash cannot make a reply long. A hash that changes meanwhile may lack fields, or have them twice.
func (s *Conn) EachField(ctx context.Context, doing, key string, f func(name, value string) bool) error {
	for cursor, first := uint64(0), true; first || cursor > 0; first = false {
		page, next, err := s.Scan(ctx, doing, func(r redis.Cmdable) *redis.ScanCmd {
			return r.HScan(ctx, key, cursor, "", fieldsPerPage)
		})
		if err != nil && !IsWrongType(err) {
			return err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if !f(page[i], page[i+1]) {
				return nil
			}
		}
		cursor = next
	}
	return nil
}

const fieldsPerPage = 500

// EverySecond returns the members in a page of ZSCAN, without their scores.
func EverySecond(page []string) (members []string) {
	for i := 0; i < len(page); i += 2 {
		members = append(members, page[i])
	}
	return members
}

// Pipeline sends several commands together. Each command must be safe to repeat. If a command reads a key that does not
// exist, or that has a wrong type, this is no error of the call, but of its command. After an outage, Pipeline calls
// fill again, which must then forget the commands of the call before.
func (s *Conn) Pipeline(ctx context.Context, doing string, fill func(redis.Pipeliner)) error {
	return Failed(doing, s.Send(ctx, fill, func(c redis.Cmder) error {
		err := c.Err()
		if err == redis.Nil || IsWrongType(err) && !writes(c) {
			return nil
		}
		return err
	}))
}

// Send sends commands until Redis has answered. If they write, replicas must confirm the writes. The function fault
// returns the error of a command.
func (s *Conn) Send(ctx context.Context, fill func(redis.Pipeliner), fault func(redis.Cmder) error) error {
	replicas := s.replicasOf(ctx)
	return s.until(ctx, func(ctx context.Context) (changes bool, err error) {
		p := s.Redis.Pipeline()
		fill(p)
		commands := p.Cmds()
		changes = acknowledged(ctx) && slices.ContainsFunc(commands, writes)
		if changes && replicas != nil {
			err = s.execConfirmed(ctx, p, replicas)
		} else {
			Exec(ctx, p)
		}
		for _, c := range commands {
			if err := fault(c); err != nil {
				return changes, err
			}
		}
		return changes, err
	})
}

// Exec executes a pipeline. Then each command has an answer or an error. If Redis refuses to prepare a new connection,
// for example because it is busy or loads its data, go-redis leaves the commands without both, as if their answers were
// empty.
func Exec(ctx context.Context, p redis.Pipeliner) []redis.Cmder {
	commands, err := p.Exec(ctx)
	failed := func(c redis.Cmder) bool { return c.Err() != nil }
	if err != nil && !slices.ContainsFunc(commands, failed) {
		for _, c := range commands {
			c.SetErr(err)
		}
	}
	return commands
}

// Failed adds to an error of Redis what the call was doing; "" if the caller adds it. It returns nil if there is no
// error.
func Failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case doing == "":
		return fmt.Errorf("redis: %w", err)
	}
	return fmt.Errorf("%s: redis: %w", doing, err)
}

// IsWrongType reports whether err means that the key has a wrong Redis type, because another program has written it.
// Callers treat the key as missing.
func IsWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }
