package redisstate

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A StoredProgram describes an archive that [Store.PutProgram] stored.
type StoredProgram struct {
	SHA256  string
	Bytes   int64
	LastUse tdf.Time // 0 if unknown: a client of an older release stored the program, and the server has not seen it yet
	Pinned  bool     // the server keeps the program, even if no task names it
}

// Programs returns the stored archives, ordered by size.
func (s *Store) Programs(ctx context.Context) ([]StoredProgram, error) {
	stored, err := s.scored(ctx, s.Keys.Programs())
	if err != nil {
		return nil, err
	}
	used, err := s.scored(ctx, s.Keys.ProgramsUsed())
	if err != nil {
		return nil, err
	}
	uses := map[any]float64{}
	for _, z := range used {
		uses[z.Member] = z.Score
	}
	programs := make([]StoredProgram, len(stored))
	for i, z := range stored {
		programs[i] = StoredProgram{SHA256: conn.Text(z.Member), Bytes: int64(z.Score), Pinned: uses[z.Member] == pinned}
		if !programs[i].Pinned {
			programs[i].LastUse = tdf.Time(uses[z.Member])
		}
	}
	return programs, nil
}

// scored returns the members of a set of stored programs, with their scores.
func (s *Store) scored(ctx context.Context, key string) ([]redis.Z, error) {
	return conn.Ask(ctx, s.Conn, "list stored programs", func(r redis.Cmdable) *redis.ZSliceCmd { return r.ZRangeWithScores(ctx, key, 0, -1) })
}

// RemoveProgram removes an archive that PutProgram stored. It is safe to repeat.
//
// The caller has looked for tasks that need the program: at the time since, it began to look at all tasks with ids up to last. If
// a client has used the program after that time, or has opened a task that names it after that id, the program stays, and removed is false. The
// caller must then look again.
func (s *Store) RemoveProgram(ctx context.Context, sha256 string, since tdf.Time, last int64) (removed bool, err error) {
	keys := []string{s.Keys.ProgramsUsed(), s.Keys.Programs(), s.Keys.Program(sha256), s.Keys.TaskID()}
	doing := "remove program " + sha256
	for {
		reply, err := s.Run(ctx, doing, lua.Drop, keys, []any{sha256, since.String(), last, s.Keys.TaskPrefix()}, conn.IsText)
		if err != nil {
			return false, err
		}
		answer := conn.Text(reply)
		looked, more := strings.CutPrefix(answer, "=")
		if !more {
			return answer == "+", nil
		}
		if last, err = strconv.ParseInt(looked, 10, 64); err != nil {
			return false, conn.Failed(doing, err)
		}
	}
}
