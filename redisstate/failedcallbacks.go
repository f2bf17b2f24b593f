package redisstate

import (
	"context"

	"github.com/tdf-framework/tdf/redisstate/callbacks"
)

// FailedCallbacks returns the records of callbacks that have failed for good, the oldest failures first, at most the
// given number. It removes records of tasks that have changed since.
func (s *Store) FailedCallbacks(ctx context.Context, most int) (failed []callbacks.Failure, err error) {
	for offset := int64(0); len(failed) < most; {
		ids, err := s.Callbacks.GivenUp(ctx, offset, int64(min(most, maxTasksPerCall)))
		if err != nil || len(ids) == 0 {
			return failed, err
		}
		records, err := s.Callbacks.Failures(ctx, ids...)
		if err != nil {
			return nil, err
		}
		current, err := s.currentFailures(ctx, records)
		if err != nil {
			return nil, err
		}
		failed, offset = append(failed, current...), offset+int64(len(current))
		if len(current) == 0 && len(ids) < maxTasksPerCall {
			break
		}
	}
	return failed[:min(len(failed), most)], nil
}

// currentFailures returns the records that are about the tasks as they are now, and removes the others.
func (s *Store) currentFailures(ctx context.Context, records []callbacks.Failure) ([]callbacks.Failure, error) {
	ids := make([]int64, len(records))
	for i, f := range records {
		ids[i] = f.Task
	}
	stored, err := s.Read(ctx, ids, Want{Fields: Rules})
	if err != nil {
		return nil, err
	}
	var current []callbacks.Failure
	var over []int64
	for i, f := range records {
		if f.IsOf(stored[i].Task) {
			current = append(current, f)
			continue
		}
		over = append(over, f.Task)
	}
	return current, s.Callbacks.EndFailures(ctx, over...)
}

// CleanFailures removes some records of failed callbacks whose tasks have changed since. The cursor begins with 0, and
// the next call continues at the cursor that is returned.
func (s *Store) CleanFailures(ctx context.Context, cursor uint64) (next uint64, err error) {
	records, next, err := s.Callbacks.ScanFailures(ctx, cursor)
	if err != nil {
		return cursor, err
	}
	_, err = s.currentFailures(ctx, records)
	return next, err
}
