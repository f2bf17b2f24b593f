package conn

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
)

// Replicas says how many replicas must confirm the writes of a call, beside the primary (docs/guarantees.md,
// "Confirmed writes").
type Replicas struct {
	Wanted int
	Least  int // fewer replicas are an *[UnknownError]
	// Confirmed is how many replicas have confirmed the last write of the call, at most Wanted.
	Confirmed atomic.Int64
}

type (
	replicasKey       struct{}
	untilConfirmedKey struct{}
	unacknowledgedKey struct{}
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

// ForOwnCalls reports whether the context has values that hold for its own calls: it is one of WithReplicas,
// UntilConfirmed or [Conn.Once]. So its calls must not be made together with those of others.
func (s *Conn) ForOwnCalls(ctx context.Context) bool {
	return ctx.Value(replicasKey{}) != nil || s.replicas.Wanted > 0 && ctx.Value(untilConfirmedKey{}) != nil ||
		InRequest(ctx)
}

// UntilConfirmed returns a context for calls that are repeated until the replicas have confirmed the write, as an
// outage of Redis is waited for.
func UntilConfirmed(ctx context.Context) context.Context {
	return context.WithValue(ctx, untilConfirmedKey{}, true)
}

// Unacknowledged returns a context for writes that nobody relies on, because they are made again, or do no harm if they
// are lost. All other writes wait for the replicas.
func Unacknowledged(ctx context.Context) context.Context {
	return context.WithValue(ctx, unacknowledgedKey{}, true)
}

func acknowledged(ctx context.Context) bool { return ctx.Value(unacknowledgedKey{}) == nil }

// Unconfirmed returns the number of calls after which too few replicas had confirmed the write in time.
func (s *Conn) Unconfirmed() int64 { return s.unconfirmed.Load() }

// inBounds sets the default, and corrects impossible values. A WAIT without a timeout would wait for ever, and one that
// is longer than the idle timeout of a connection would look like an outage.
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

// execConfirmed executes a pipeline, and waits until as many replicas as wanted have confirmed its writes. The error is
// about the confirmation; the commands have errors of their own.
//
// All commands go over one connection, because another one may lead to another primary. WAIT waits for the last write
// of its connection, and a repeated call may write nothing. So a write comes before WAIT: it renews the expiry of a key
// that exists for this purpose.
func (s *Conn) execConfirmed(ctx context.Context, p redis.Pipeliner, want *Replicas) error {
	if err := s.makeConfirmable(ctx); err != nil {
		for _, c := range p.Cmds() {
			c.SetErr(err)
		}
		return nil
	}
	renewed := p.Expire(ctx, s.Keys.Confirmed(), confirmedLife)
	waited := p.Do(ctx, "WAIT", want.Wanted, s.replicas.Timeout.Milliseconds())
	Exec(ctx, p)
	exists, err := renewed.Result()
	if err != nil {
		return err
	}
	if !exists {
		s.confirmable.Store(false)
		return &answerError{reason: "the namespace was removed during a call"}
	}
	n, err := waited.Int()
	if err != nil {
		return err
	}
	want.Confirmed.Store(int64(min(n, want.Wanted)))
	if n < want.Least {
		s.unconfirmed.Add(1)
		repeated := !s.ReportUnknown || ctx.Value(untilConfirmedKey{}) != nil
		return &UnknownError{Confirmed: n, Wanted: want.Least, repeated: repeated}
	}
	return nil
}

// makeConfirmable makes the key whose expiry execConfirmed renews.
func (s *Conn) makeConfirmable(ctx context.Context) error {
	if s.confirmable.Load() {
		return nil
	}
	exists, err := s.Redis.Expire(ctx, s.Keys.Confirmed(), confirmedLife).Result()
	if err == nil && !exists {
		err = s.Redis.Set(ctx, s.Keys.Confirmed(), "", confirmedLife).Err()
	}
	s.confirmable.Store(err == nil)
	return err
}

// writes reports whether a command may write. A command that is not in this list only costs time if it does not.
func writes(c redis.Cmder) bool {
	switch c.Name() {
	case "config", "exists", "get", "getrange", "hexists", "hget", "hgetall", "hkeys", "hlen", "hmget", "hscan", "hstrlen",
		"info", "llen", "lrange", "memory", "mget", "scan", "smembers", "sscan", "strlen", "time", "type", "xlen", "xrange",
		"xrevrange", "zcard", "zcount", "zmscore", "zrange", "zrangebylex", "zrangebyscore", "zrank", "zrevrange",
		"zrevrangebyscore", "zscan", "zscore":
		return false
	}
	return true
}

// confirmedLife is so long that the key exists whenever Redis is full.
const confirmedLife = 10 * 365 * 24 * time.Hour
