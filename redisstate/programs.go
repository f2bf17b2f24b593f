package redisstate

import (
	"context"
	"fmt"
)

// A StoredProgram is an archive that PutProgram stored.
type StoredProgram struct {
	SHA256 string
	Bytes  int64
}

// Programs returns the archives that are stored in the namespace, by their sizes.
func (s *Store) Programs(ctx context.Context) ([]StoredProgram, error) {
	var programs []StoredProgram
	err := s.persist(ctx, func(ctx context.Context) error {
		stored, err := s.rdb.ZRangeWithScores(ctx, s.keys.programs(), 0, -1).Result()
		programs = make([]StoredProgram, len(stored))
		for i, z := range stored {
			name, _ := z.Member.(string)
			programs[i] = StoredProgram{SHA256: name, Bytes: int64(z.Score)}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading which programs are stored: redis: %w", err)
	}
	return programs, nil
}
