package programs

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A stored program has a last use: the time when a client last stored it, opened tasks with it, or found it in a task.
// The server removes programs whose last use is long ago. A pinned program has the last use pinned, so that it stays.
var pinned = math.Inf(1)

// usedPrograms holds the times at which this client last renewed the last use of stored programs. A client renews it
// again only after renewPause. This time is far shorter than task.ProgramKeep.
type usedPrograms struct {
	mu      sync.Mutex
	renewed map[string]time.Time
}

const (
	renewPause  = time.Hour
	mostRenewed = 1000 // the largest number of programs that a client remembers
)

// stale returns the programs whose last use this client must renew.
func (u *usedPrograms) stale(sums []string) (stale []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, sum := range sums {
		if at, known := u.renewed[sum]; !known || time.Since(at) >= renewPause {
			stale = append(stale, sum)
		}
	}
	return stale
}

func (u *usedPrograms) record(sums []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.renewed == nil || len(u.renewed) >= mostRenewed {
		u.renewed = map[string]time.Time{}
	}
	for _, sum := range sums {
		u.renewed[sum] = time.Now()
	}
}

// NameDefinitions prepares a call that opens tasks: no server removes the stored programs that the tasks name. Without
// such programs, it sends no command.
func (s *Archives) NameDefinitions(ctx context.Context, definitions []task.Properties) error {
	return s.NamePrograms(ctx, programsOf(definitions))
}

// programsOf returns the stored programs that definitions name. It also has "" if a definition names none.
func programsOf(definitions []task.Properties) map[string]bool {
	sums := map[string]bool{}
	for i := range definitions {
		sums[task.StoredProgram(definitions[i].Source)] = true
	}
	return sums
}

// CheckPrograms checks that the stored programs that new tasks name are stored. The error wraps [ErrNoProgram] if one
// of them is not. Without such programs, CheckPrograms sends no command. It overlooks a removal by a user that begins
// before and ends after the check. For a request that was carried out before, it checks nothing.
func (s *Archives) CheckPrograms(ctx context.Context, definitions []task.Properties) error {
	if conn.IsRepeated(ctx) {
		return nil
	}
	sums := programsOf(definitions)
	if err := s.NamePrograms(ctx, sums); err != nil {
		return err
	}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(sums)), programsAtOnce) {
		found, err := conn.AskEach(ctx, s.Conn, "find stored programs", page,
			func(p redis.Pipeliner, sum string) *redis.IntCmd {
				return p.Exists(ctx, s.Conn.Keys.Program(sum))
			})
		if err != nil {
			return err
		}
		for i, n := range found {
			if n.Val() == 0 {
				return fmt.Errorf("program %s: %w", page[i], ErrNoProgram)
			}
		}
	}
	return nil
}

// NamePrograms is like NameDefinitions, for any set of programs. It removes "" from the set.
func (s *Archives) NamePrograms(ctx context.Context, sums map[string]bool) error {
	delete(sums, "")
	if len(sums) == 0 {
		return nil
	}
	stale := s.used.stale(slices.Collect(maps.Keys(sums)))
	if len(stale) == 0 {
		return nil
	}
	now, err := s.Conn.Now(ctx)
	if err != nil {
		return err
	}
	if err := s.UsePrograms(ctx, now, stale...); err != nil {
		return err
	}
	s.used.record(stale)
	return nil
}

// UsePrograms renews the last use of stored programs. It ignores programs that are not stored.
func (s *Archives) UsePrograms(ctx context.Context, now task.Time, sums ...string) error {
	for page := range slices.Chunk(sums, programsAtOnce) {
		if err := s.setUse(ctx, "renew the last use of programs", float64(now), redis.ZAddArgs{XX: true, GT: true},
			page); err != nil {
			return err
		}
	}
	return nil
}

const programsAtOnce = 500

func (s *Archives) setUse(ctx context.Context, doing string, score float64, how redis.ZAddArgs, sums []string) error {
	for _, sum := range sums {
		how.Members = append(how.Members, redis.Z{Score: score, Member: sum})
	}
	return s.Conn.BestEffort(ctx, doing, func(p redis.Pipeliner) { p.ZAddArgs(ctx, s.Conn.Keys.ProgramsUsed(), how) })
}

// PinPrograms makes the server keep stored programs, even if no task names them. UnpinPrograms ends this.
func (s *Archives) PinPrograms(ctx context.Context, sums ...string) error {
	for _, sum := range sums {
		if err := s.setUse(ctx, "pin program "+sum, pinned, redis.ZAddArgs{}, []string{sum}); err != nil {
			return err
		}
		stored, err := s.HasProgram(ctx, sum) // after the pin: from now on, no server removes the program
		if err != nil {
			return err
		}
		if !stored {
			return fmt.Errorf("pin program %s: %w", sum, ErrNoProgram)
		}
	}
	return nil
}

// UnpinPrograms ends the effect of PinPrograms. It counts as a use of the programs.
func (s *Archives) UnpinPrograms(ctx context.Context, sums ...string) error {
	now, err := s.Conn.Now(ctx)
	if err != nil || len(sums) == 0 {
		return err
	}
	return s.setUse(ctx, "unpin programs", float64(now), redis.ZAddArgs{XX: true}, sums)
}

// HasPrograms reports whether the namespace has stored programs.
func (s *Archives) HasPrograms(ctx context.Context) (bool, error) {
	n, err := conn.Ask(ctx, s.Conn, "count stored programs", func(r redis.Cmdable) *redis.IntCmd {
		return r.ZCard(ctx, s.Conn.Keys.ProgramsUsed())
	})
	return n > 0, err
}

// RemoveUnused removes stored programs whose last use was before the given time, but at most the given number. It
// returns their SHA-256 sums. If a client uses a program in the meantime, it stays.
func (s *Archives) RemoveUnused(ctx context.Context, before task.Time, most int64) (removed []string, err error) {
	if s.Conn.ScanRefused() {
		return nil, nil // walks may have left out tasks
	}
	unused, err := conn.Ask(ctx, s.Conn, removeUnused, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: s.Conn.Keys.ProgramsUsed(), ByScore: true, Start: "-inf", Stop: "(" + before.String(), Count: most,
		})
	})
	if err != nil || len(unused) == 0 {
		return nil, err
	}
	return s.removeUnused(ctx, before, unused)
}

const removeUnused = "remove unused programs"

func (s *Archives) removeUnused(ctx context.Context, before task.Time, unused []string) (removed []string, err error) {
	k, args := &s.Conn.Keys, []any{before.String()}
	keys := []string{k.ProgramsUsed(), k.Programs(), k.ProgramOwners()}
	for _, sum := range unused {
		keys, args = append(keys, k.Program(sum)), append(args, sum)
	}
	reply, err := s.Conn.Run(ctx, removeUnused, lua.Unused, keys, args, conn.ManyTexts)
	for _, sum := range conn.List(reply) {
		removed = append(removed, conn.Text(sum))
	}
	return removed, err
}
