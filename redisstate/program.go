package redisstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// MaxProgram is the maximum size of a program's archive in Redis, in bytes.
const MaxProgram = 64 << 20

// PutProgram stores a program's archive in the namespace and returns its source, redis:SHA256. It is safe to repeat.
func (s *Store) PutProgram(ctx context.Context, archive []byte) (source string, err error) {
	if len(archive) > MaxProgram {
		return "", fmt.Errorf("store program: the archive has %d bytes; want at most %d", len(archive), MaxProgram)
	}
	sum := sha256.Sum256(archive)
	name := hex.EncodeToString(sum[:])
	now, err := s.Now(ctx)
	if err != nil {
		return "", err
	}
	err = s.UntilAnswered(ctx, func(ctx context.Context) error {
		// First renew the last use, so that no server removes the program.
		used := redis.ZAddArgs{GT: true, Members: []redis.Z{{Score: float64(now), Member: name}}}
		err := s.Redis.ZAddArgs(ctx, s.Keys.ProgramsUsed(), used).Err()
		// Then write the entry in the list of programs: the method Programs finds only archives that have an entry.
		if err == nil {
			err = s.Redis.ZAdd(ctx, s.Keys.Programs(), redis.Z{Score: float64(len(archive)), Member: name}).Err()
		}
		if err == nil {
			err = s.Redis.Set(ctx, s.Keys.Program(name), archive, 0).Err()
		}
		if err != nil && strings.HasPrefix(err.Error(), "OOM") {
			return conn.ErrFull
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("store program: redis: %w", err)
	}
	return "redis:" + name, nil
}

// Program returns an archive that PutProgram stored. It returns nil if the namespace has no archive with this SHA-256.
func (s *Store) Program(ctx context.Context, sha256 string) ([]byte, error) {
	var archive *redis.StringCmd
	err := s.Pipeline(ctx, "read program "+sha256, func(p redis.Pipeliner) { archive = p.Get(ctx, s.Keys.Program(sha256)) })
	if err != nil || archive.Err() != nil { // it does not exist, or is no string
		return nil, err
	}
	return archive.Bytes()
}
