package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A Stored describes an archive that [Archives.PutProgram] stored.
type Stored struct {
	SHA256  string
	Bytes   int64
	LastUse task.Time // 0 if the program is pinned
	Pinned  bool      // the server keeps the program, even if no task names it
}

// Programs returns the stored archives, ordered by size.
func (s *Archives) Programs(ctx context.Context) ([]Stored, error) {
	stored, err := s.scored(ctx, s.Conn.Keys.Programs())
	if err != nil {
		return nil, err
	}
	used, err := s.scored(ctx, s.Conn.Keys.ProgramsUsed())
	if err != nil {
		return nil, err
	}
	uses := map[any]float64{}
	for _, z := range used {
		uses[z.Member] = z.Score
	}
	programs := make([]Stored, len(stored))
	for i, z := range stored {
		programs[i] = Stored{
			SHA256: conn.Text(z.Member), Bytes: int64(z.Score),
			Pinned: uses[z.Member] == pinned,
		}
		if !programs[i].Pinned {
			programs[i].LastUse = task.Time(uses[z.Member])
		}
	}
	return programs, nil
}

// scored returns the members of a set of stored programs, with their scores.
func (s *Archives) scored(ctx context.Context, key string) ([]redis.Z, error) {
	return conn.Ask(ctx, s.Conn, "list stored programs", func(r redis.Cmdable) *redis.ZSliceCmd {
		return r.ZRangeWithScores(ctx, key, 0, -1)
	})
}

// ProgramOwners returns the tokens of submitters that have stored programs first, by the SHA-256 sums of the programs.
func (s *Archives) ProgramOwners(ctx context.Context) (map[string]string, error) {
	return conn.Ask(ctx, s.Conn, "read the owners of programs", func(r redis.Cmdable) *redis.MapStringStringCmd {
		return r.HGetAll(ctx, s.Conn.Keys.ProgramOwners())
	})
}

// OwnProgram makes a stored program count as one of a submitter's token.
func (s *Archives) OwnProgram(ctx context.Context, sum, token string) error {
	return s.Conn.Pipeline(ctx, "store the owner of a program",
		func(p redis.Pipeliner) { p.HSetNX(ctx, s.Conn.Keys.ProgramOwners(), sum, token) })
}

// RemoveProgram removes an archive that PutProgram stored. It is safe to repeat.
//
// The caller has looked for tasks that need the program: at the time since, it began to look at all tasks with ids up
// to last. If a client has used the program after that time, or has opened a task that names it after that id, the
// program stays, and removed is false. The caller must then look again.
func (s *Archives) RemoveProgram(ctx context.Context, sum string, since task.Time, last int64) (removed bool,
	err error,
) {
	keys := []string{
		s.Conn.Keys.ProgramsUsed(), s.Conn.Keys.Programs(), s.Conn.Keys.Program(sum), s.Conn.Keys.TaskID(),
		s.Conn.Keys.ProgramOwners(),
	}
	doing := "remove program " + sum
	for {
		reply, err := s.Conn.Run(ctx, doing, lua.Drop, keys, []any{sum, since.String(), last, s.Conn.Keys.TaskPrefix()},
			conn.IsText)
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

// MaxBytes is the maximum size of a program's archive in Redis, in bytes.
const MaxBytes = 64 << 20

// PutProgram stores a program's archive in the namespace and returns its source, redis:SHA256. It is safe to repeat.
func (s *Archives) PutProgram(ctx context.Context, archive []byte) (source string, err error) {
	if len(archive) > MaxBytes {
		return "", fmt.Errorf("store program: the archive has %d bytes; want at most %d", len(archive), MaxBytes)
	}
	sum := sha256.Sum256(archive)
	name := hex.EncodeToString(sum[:])
	now, err := s.Conn.Now(ctx)
	if err != nil {
		return "", err
	}
	key, used := s.Conn.Keys.Program(name), redis.Z{Score: float64(now), Member: name}
	entry := redis.Z{Score: float64(len(archive)), Member: name}
	list := func(p redis.Pipeliner) {
		// the last use comes first, so that no server removes the program
		p.ZAddArgs(ctx, s.Conn.Keys.ProgramsUsed(), redis.ZAddArgs{GT: true, Members: []redis.Z{used}})
		p.ZAdd(ctx, s.Conn.Keys.Programs(), entry)
	}
	fault := func(c redis.Cmder) error {
		if redis.HasErrorPrefix(c.Err(), "OOM") {
			return conn.ErrFull
		}
		return c.Err()
	}
	// Programs finds only archives that have an entry, so the first call shows that Redis accepts the entry
	err = s.Conn.Send(conn.Unacknowledged(ctx), list, fault)
	if err == nil {
		err = s.Conn.Send(ctx, func(p redis.Pipeliner) { list(p); p.Set(ctx, key, archive, 0) }, fault)
	}
	if err != nil {
		return "", fmt.Errorf("store program: redis: %w", err)
	}
	return "redis:" + name, nil
}

// Program returns an archive that PutProgram stored. It returns nil if the namespace has no archive with this SHA-256.
func (s *Archives) Program(ctx context.Context, sum string) ([]byte, error) {
	var archive *redis.StringCmd
	err := s.Conn.Pipeline(ctx, "read program "+sum,
		func(p redis.Pipeliner) { archive = p.Get(ctx, s.Conn.Keys.Program(sum)) })
	if err != nil || archive.Err() != nil { // it does not exist, or is no string
		return nil, err
	}
	return archive.Bytes()
}

// HasProgram reports whether the namespace stores a program's archive with this SHA-256.
func (s *Archives) HasProgram(ctx context.Context, sum string) (bool, error) {
	n, err := conn.Ask(ctx, s.Conn, "find stored program", func(r redis.Cmdable) *redis.IntCmd {
		return r.Exists(ctx, s.Conn.Keys.Program(sum))
	})
	return n > 0, err
}

// ProgramPart returns a part of an archive that PutProgram stored: at most the given number of bytes, from a place on.
// It also returns the size of the archive, which is 0 if the namespace has none with this SHA-256.
func (s *Archives) ProgramPart(ctx context.Context, sum string, from, most int64) (part []byte, size int64,
	err error,
) {
	var bytes *redis.StringCmd
	var length *redis.IntCmd
	err = s.Conn.Pipeline(ctx, "read program "+sum, func(p redis.Pipeliner) {
		bytes = p.GetRange(ctx, s.Conn.Keys.Program(sum), from, from+most-1)
		length = p.StrLen(ctx, s.Conn.Keys.Program(sum))
	})
	return []byte(bytes.Val()), length.Val(), err
}
