package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// AddSession stores a session of a holder. It removes the expired ones, and the oldest one if there are too many. Two
// calls at the same time may leave one more. A full Redis stores it, too, because the user must be able to see that
// Redis is full.
func (s *Accounts) AddSession(ctx context.Context, holder, digest string, add access.Session, now task.Time) error {
	const doing = "store a session"
	all, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.MapStringStringCmd {
		return r.HGetAll(ctx, s.Conn.Keys.Sessions(holder))
	})
	if err != nil {
		return err
	}
	surplus := surplusSessions(all, now)
	return s.Conn.BestEffort(ctx, doing, func(p redis.Pipeliner) {
		for _, d := range surplus {
			p.HDel(ctx, s.Conn.Keys.Sessions(holder), d)
		}
		p.HSet(ctx, s.Conn.Keys.Sessions(holder), digest, add.Text())
		p.Expire(ctx, s.Conn.Keys.Sessions(holder), access.SessionLife)
	})
}

// surplusSessions returns the digests of the sessions that must go so that another one has room.
func surplusSessions(all map[string]string, now task.Time) []string {
	var gone, rest []string
	expires := map[string]task.Time{}
	for digest, text := range all {
		if read, err := access.ParseSession(text); err != nil || read.Expires <= now {
			gone = append(gone, digest)
		} else {
			rest, expires[digest] = append(rest, digest), read.Expires
		}
	}
	slices.SortFunc(rest, func(a, b string) int { return cmp.Compare(expires[a], expires[b]) })
	return append(gone, rest[:max(0, len(rest)-access.MaxSessions+1)]...)
}

// Session returns a session, and the time of Redis's clock. It returns [access.ErrLoggedOut] if there is no such
// session.
func (s *Accounts) Session(ctx context.Context, holder, digest string) (read access.Session, now task.Time, err error) {
	var text *redis.StringCmd
	var clock *redis.TimeCmd
	err = s.Conn.Pipeline(ctx, "read a session", func(p redis.Pipeliner) {
		text, clock = p.HGet(ctx, s.Conn.Keys.Sessions(holder), digest), p.Time(ctx)
	})
	if err != nil {
		return read, 0, err
	}
	if read, err = access.ParseSession(text.Val()); err != nil {
		return access.Session{}, 0, access.ErrLoggedOut
	}
	return read, task.At(clock.Val()), nil
}

// RemoveSession removes a session.
func (s *Accounts) RemoveSession(ctx context.Context, holder, digest string) error {
	_, err := conn.Ask(ctx, s.Conn, "remove a session", func(r redis.Cmdable) *redis.IntCmd {
		return r.HDel(ctx, s.Conn.Keys.Sessions(holder), digest)
	})
	return err
}

// AddLogin stores a login, which is a session that nobody has begun yet.
func (s *Accounts) AddLogin(ctx context.Context, digest string, add access.Session, life time.Duration) error {
	return s.Conn.BestEffort(ctx, "store a login", func(p redis.Pipeliner) {
		p.Set(ctx, s.Conn.Keys.Login(digest), add.Text(),
			life)
	})
}

// TakeLogin returns a login, and removes it. It returns [access.ErrLoggedOut] if there is no such login, or if an
// earlier call has taken it. If the answer to the call was lost, the login is lost, too.
func (s *Accounts) TakeLogin(ctx context.Context, digest string) (access.Session, error) {
	text, err := conn.Ask(conn.Unacknowledged(ctx), s.Conn, "take a login", func(r redis.Cmdable) *redis.StringCmd {
		return r.GetDel(ctx, s.Conn.Keys.Login(digest))
	})
	if err != nil {
		return access.Session{}, err
	}
	if read, err := access.ParseSession(text); err == nil {
		return read, nil
	}
	return access.Session{}, access.ErrLoggedOut
}
