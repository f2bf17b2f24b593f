package conn

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
)

// An UnknownError means that the outcome of a change is unknown (docs/guarantees.md, "Confirmed writes"). Either Redis
// has made the change, and too few replicas have confirmed it in time: if the primary fails now, the change may be
// lost. Or the call ended before Redis answered, so that Redis may have made the change or not.
type UnknownError struct {
	Confirmed, Wanted int
	Err               error // why the call ended before the answer; nil if only replicas are missing
	repeated          bool  // the call is repeated, as after an outage
}

func (e *UnknownError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("unknown: redis may have made the change, and has not answered: %v", e.Err)
	}
	return fmt.Sprintf("unknown: the primary has made the change, and %d of %d replicas have confirmed it in time; "+
		"if the primary fails now, the change may be lost", e.Confirmed, e.Wanted)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*UnknownError) Code() task.Code { return task.CodeUnknown }

func (e *UnknownError) Unwrap() error { return e.Err }

// IsUnconfirmed reports whether err means that a write was made, and too few replicas have confirmed it.
func IsUnconfirmed(err error) bool {
	var unknown *UnknownError
	return errors.As(err, &unknown) && unknown.Err == nil
}

// Unanswered reports whether err means that there is no answer of Redis. If only replicas are missing, there is one:
// the caller then reads it, because Redis may have refused the change.
func Unanswered(err error) bool { return err != nil && !IsUnconfirmed(err) }

// until does the same as UntilAnswered, for an op that also returns whether it changes something. If ctx ends although
// Redis may have made the change, the error is an *[UnknownError].
func (s *Conn) until(ctx context.Context, op func(context.Context) (changes bool, err error)) error {
	perhaps := false
	err := s.UntilAnswered(ctx, func(ctx context.Context) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		changes, err := op(ctx)
		perhaps = perhaps || changes && mayHaveWritten(err)
		return err
	})
	if err != nil && perhaps && ctx.Err() != nil {
		return &UnknownError{Err: err}
	}
	return err
}

// mayHaveWritten reports whether Redis may have carried out the commands of a call with this error. An error reply says
// that it has not. WAIT is an exception: it comes after the writes.
func mayHaveWritten(err error) bool {
	var reply redis.Error
	var op *net.OpError
	switch {
	case err == nil, errors.Is(err, redis.ErrPoolTimeout), errors.As(err, &op) && op.Op == "dial":
		return false
	case errors.As(err, &reply):
		why, _ := outage(err)
		return why == passing["UNBLOCKED"]
	}
	return true
}
