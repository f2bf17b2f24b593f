package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
)

// Replicas says how many replicas must confirm the writes of a call, beside the primary (docs/guarantees.md,
// "Confirmed writes").
type Replicas struct {
	Wanted int
	Least  int // fewer replicas are an *[UnconfirmedError]
	// Confirmed is how many replicas have confirmed the last write of the call, at most Wanted.
	Confirmed atomic.Int64
}

type (
	replicasKey       struct{}
	untilConfirmedKey struct{}
)

// WithReplicas returns a context for calls that want more replicas than the configuration says.
func WithReplicas(ctx context.Context, r *Replicas) context.Context {
	return context.WithValue(ctx, replicasKey{}, r)
}

// AtMost returns what a call wants that asks for a number of replicas and is content with fewer. It is never less than
// what the configuration says. Replicas that are not online are not waited for.
func (s *Conn) AtMost(ctx context.Context, n int) (*Replicas, error) {
	r := &Replicas{Wanted: s.replicas.Wanted, Least: s.replicas.Wanted}
	if n <= r.Wanted {
		return r, nil
	}
	info, err := s.Info(ctx, "replication")
	r.Wanted = max(r.Wanted, min(n, s.Replication(info).Online()))
	return r, err
}

// WantsReplicas reports whether the context is one of WithReplicas.
func WantsReplicas(ctx context.Context) bool { return ctx.Value(replicasKey{}) != nil }

// UntilConfirmed returns a context for calls that are repeated until the replicas have confirmed the write, as an
// outage of Redis is waited for.
func UntilConfirmed(ctx context.Context) context.Context {
	return context.WithValue(ctx, untilConfirmedKey{}, true)
}

// An UnconfirmedError means that Redis has carried out a write, and too few replicas have confirmed it in time. If the
// primary fails now, the write may be lost.
type UnconfirmedError struct {
	Confirmed, Wanted int
	repeated          bool // the call is repeated, as after an outage
}

func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("unknown: the primary has made the change, and %d of %d replicas have confirmed it in time "+
		"([redis] replicas_timeout); if the primary fails now, the change may be lost", e.Confirmed, e.Wanted)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*UnconfirmedError) Code() tdf.Code { return tdf.CodeUnknown }

// Unconfirmed returns the number of calls after which too few replicas had confirmed the write in time.
func (s *Conn) Unconfirmed() int64 { return s.unconfirmed.Load() }

// IsUnconfirmed reports whether err means that a write was made, and too few replicas have confirmed it.
func IsUnconfirmed(err error) bool { return errors.As(err, new(*UnconfirmedError)) }

// inBounds corrects values that no file can have. A WAIT without a timeout would wait for ever, and one that is longer
// than the idle timeout of a connection would look like an outage.
func inBounds(r config.Replicas) config.Replicas {
	r.Timeout = min(cmp.Or(max(0, r.Timeout), time.Second), idleTimeout-time.Second)
	r.Wanted = max(0, r.Wanted)
	return r
}

// Confirms reports whether replicas must confirm the writes of a call with this context.
func (s *Conn) Confirms(ctx context.Context) bool { return s.replicasOf(ctx) != nil }

// replicasOf returns what a call with this context wants; nil if it wants no replica.
func (s *Conn) replicasOf(ctx context.Context) *Replicas {
	r, ok := ctx.Value(replicasKey{}).(*Replicas)
	if !ok || r.Wanted < s.replicas.Wanted {
		r = &Replicas{Wanted: s.replicas.Wanted, Least: s.replicas.Wanted}
	}
	if r.Wanted == 0 {
		return nil
	}
	return r
}

// runConfirmed runs a script, and waits until replicas have confirmed its writes. All commands go over one connection,
// because another one may lead to another primary. WAIT waits for the last write of its connection, and a repeated call
// may write nothing. So a write comes before WAIT: it renews the expiry of a key that exists for this purpose.
func (s *Conn) runConfirmed(
	ctx context.Context, x *redis.Script, keys []string, args []any, want *Replicas,
) (any, error) {
	reply, err := s.exchange(ctx, x.EvalSha, keys, args, want)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.exchange(ctx, x.Eval, keys, args, want)
	}
	return reply, err
}

func (s *Conn) exchange(
	ctx context.Context, run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd, keys []string,
	args []any, want *Replicas,
) (any, error) {
	p := s.Redis.Pipeline()
	answer := run(ctx, p, keys, args...)
	renewed := p.Expire(ctx, s.Keys.Confirmed(), confirmedLife)
	waited := p.Do(ctx, "WAIT", want.Wanted, s.replicas.Timeout.Milliseconds())
	Exec(ctx, p)
	reply, err := answer.Result()
	if err != nil && err != redis.Nil {
		return reply, err
	}
	exists, failed := renewed.Result()
	if failed != nil {
		return reply, failed
	}
	if !exists {
		if err := s.Redis.Set(ctx, s.Keys.Confirmed(), "", confirmedLife).Err(); err != nil {
			return reply, err
		}
		return reply, &answerError{reason: "the first confirmed call of a namespace is repeated"}
	}
	n, failed := waited.Int()
	if failed != nil {
		return reply, failed
	}
	want.Confirmed.Store(int64(min(n, want.Wanted)))
	if n < want.Least {
		s.unconfirmed.Add(1)
		return reply, &UnconfirmedError{n, want.Least, !s.ReportUnknown || ctx.Value(untilConfirmedKey{}) != nil}
	}
	return reply, err
}

// confirmedLife is so long that the key exists whenever Redis is full.
const confirmedLife = 10 * 365 * 24 * time.Hour
