package redisstate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
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
	var programs []StoredProgram
	err := s.untilAnswered(ctx, func(ctx context.Context) error {
		stored, err := s.rdb.ZRangeWithScores(ctx, s.keys.programs(), 0, -1).Result()
		programs = make([]StoredProgram, len(stored))
		for i, z := range stored {
			name, _ := z.Member.(string)
			programs[i] = StoredProgram{SHA256: name, Bytes: int64(z.Score)}
		}
		return err
	})
	if err == nil && len(programs) > 0 {
		var uses map[string]float64
		uses, err = s.programUses(ctx)
		for i := range programs {
			p := &programs[i]
			if p.Pinned = uses[p.SHA256] == pinned; !p.Pinned {
				p.LastUse = tdf.Time(uses[p.SHA256])
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list stored programs: redis: %w", err)
	}
	return programs, nil
}

// RemoveProgram removes an archive that PutProgram stored. It is safe to repeat.
//
// The caller has looked for tasks that need the program: at the time since, it began to look at all tasks with ids up to last. If
// a client has used the program after that time, or has opened a task that names it after that id, the program stays, and removed is false. The
// caller must then look again.
func (s *Store) RemoveProgram(ctx context.Context, sha256 string, since tdf.Time, last int64) (removed bool, err error) {
	keys := []string{s.keys.programsUsed(), s.keys.programs(), s.keys.program(sha256), s.keys.taskID()}
	for {
		reply, err := s.run(ctx, dropScript, keys, []any{sha256, since.String(), last, s.keys.taskPrefix()}, isText)
		if err != nil {
			return false, fmt.Errorf("remove program %s: redis: %w", sha256, err)
		}
		answer := text(reply)
		looked, more := strings.CutPrefix(answer, "=")
		if !more {
			return answer == "+", nil
		}
		if last, err = strconv.ParseInt(looked, 10, 64); err != nil {
			return false, fmt.Errorf("remove program %s: redis: %w", sha256, err)
		}
	}
}
