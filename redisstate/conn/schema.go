package conn

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Schema is the version of the layout of keys that this release of TDF writes.
const Schema = 2

// Ready waits until Redis answers, and checks that this release of TDF can use the Redis and the namespace. If it
// cannot, the error is a *[RefusedError]. Until a check has succeeded, each of the other methods first
// does the same check.
func (s *Conn) Ready(ctx context.Context) error {
	if s.connected.Load() {
		return nil
	}
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.connected.Load() { // another call did the check meanwhile
		return nil
	}
	err := s.check(ctx)
	if refused := refusal(s.Addr, err); refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	s.connected.Store(true)
	return nil
}

func (s *Conn) check(ctx context.Context) error {
	var answer redis.Error
	err := s.retry(ctx, func(ctx context.Context) error {
		err := s.Redis.Ping(ctx).Err()
		errors.As(err, &answer)
		return err
	})
	if err != nil && ctx.Err() != nil && answer != nil {
		return &WaitingError{s.Addr, answer.Error(), err}
	}
	if err != nil {
		return fmt.Errorf("connect to redis at %s: %w", s.Addr, err)
	}
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	if err := s.checkKinds(ctx); err != nil {
		return err
	}
	return s.checkSchema(ctx)
}

// checkServer reads what kind of Redis this is. It returns a *[RefusedError] if only one of the configuration and Redis
// is in cluster mode.
func (s *Conn) checkServer(ctx context.Context) error {
	var info Info
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		info, err = s.info(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("redis at %s: read the version of Redis: %w", s.Addr, err)
	}
	if info.inCluster() && s.cluster == nil {
		return &RefusedError{Addr: s.Addr, Reason: inCluster}
	}
	if !info.inCluster() && s.cluster != nil {
		return &RefusedError{Addr: s.Addr, Reason: notCluster}
	}
	s.flags.Store(info.major() >= 7)
	return nil
}

// checkKinds returns a *[RefusedError] if a key of the namespace has an unexpected Redis type.
func (s *Conn) checkKinds(ctx context.Context) error {
	kinds := s.Keys.Kinds()
	found := map[string]*redis.StatusCmd{}
	err := s.retry(ctx, func(ctx context.Context) error {
		_, err := s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for key := range kinds {
				found[key] = p.Type(ctx, key)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("redis at %s: check the namespace: %w", s.Addr, err)
	}
	for key, kind := range kinds {
		if is := found[key].Val(); is != "none" && is != kind {
			return &RefusedError{Addr: s.Addr, Reason: fmt.Sprintf(
				"the key %s is a %s and not a %s: another program uses the namespace %q; choose another in [tdf] "+
					"namespace",
				key, is, kind, s.Keys.Namespace())}
		}
	}
	return nil
}

// checkSchema returns a *[RefusedError] if this release of TDF does not know the layout of the namespace. It writes the
// layout version into a new namespace.
func (s *Conn) checkSchema(ctx context.Context) error {
	var found string
	err := s.retry(ctx, func(ctx context.Context) error {
		var err error
		if found, err = s.Redis.Get(ctx, s.Keys.Schema()).Result(); err != redis.Nil {
			return err
		}
		if err := s.beginNamespace(ctx); err != nil {
			return err
		}
		found, err = s.Redis.Get(ctx, s.Keys.Schema()).Result()
		return err
	})
	if err != nil {
		return fmt.Errorf("redis at %s: read the layout version: %w", s.Addr, err)
	}
	if v, err := strconv.Atoi(found); err != nil || v != Schema {
		return &RefusedError{Addr: s.Addr, Reason: fmt.Sprintf(
			"the namespace %q has layout version %s, and this release knows version %d; use a release that knows "+
				"both, or another namespace",
			s.Keys.Namespace(), found, Schema)}
	}
	return nil
}

// SchemaOf returns the layout version of the namespace.
func (s *Conn) SchemaOf(ctx context.Context) (version string, err error) {
	return Ask(ctx, s, "read the layout version", func(r redis.Cmdable) *redis.StringCmd {
		return r.Get(ctx, s.Keys.Schema())
	})
}

// TryWrite makes a write that changes nothing. It returns an error if Redis refuses writes.
func (s *Conn) TryWrite(ctx context.Context) error {
	return s.BestEffort(ctx, "try a write", func(p redis.Pipeliner) { p.ZRem(ctx, s.Keys.TokensUsed(), "") })
}
