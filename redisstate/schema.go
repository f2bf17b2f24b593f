package redisstate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Schema is the version of the layout that this release writes.
const Schema = 1

// check makes sure that what answers is a Redis that we can use, and that the namespace is ours.
func (s *Store) check(ctx context.Context) error {
	err := s.untilAnswered(ctx, func(ctx context.Context) error { return s.rdb.Ping(ctx).Err() })
	if refused := refusal(s.addr, err); refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("redis at %s: %w", s.addr, err)
	}
	if err := s.checkKinds(ctx); err != nil {
		return err
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	s.scripts = loadScripts(info.major() >= 7)
	return nil
}

func (s *Store) checkKinds(ctx context.Context) error {
	kinds := s.keys.kinds()
	found := map[string]*redis.StatusCmd{}
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for key := range kinds {
			found[key] = p.Type(ctx, key)
		}
	})
	if err != nil {
		return err
	}
	for key, kind := range kinds {
		if is := found[key].Val(); is != "none" && is != kind {
			return &RefusedError{Addr: s.addr, Reason: fmt.Sprintf(
				"the key %s is a %s and not a %s: the namespace %q is used by something else; choose another in [tdf] namespace",
				key, is, kind, s.keys.ns)}
		}
	}
	return nil
}

func (s *Store) checkSchema(ctx context.Context) error {
	var found string
	err := s.untilAnswered(ctx, func(ctx context.Context) error {
		var err error
		if found, err = s.rdb.Get(ctx, s.keys.schema()).Result(); err != redis.Nil { // a full Redis takes no SETNX
			return err
		}
		if err := s.rdb.SetNX(ctx, s.keys.schema(), Schema, 0).Err(); err != nil {
			return err
		}
		found, err = s.rdb.Get(ctx, s.keys.schema()).Result()
		return err
	})
	if err != nil {
		return fmt.Errorf("redis at %s: reading the layout's version: %w", s.addr, err)
	}
	if v, err := strconv.Atoi(found); err != nil || v > Schema || v < Schema-1 {
		return &RefusedError{Addr: s.addr, Reason: fmt.Sprintf(
			"the namespace %q has layout version %s, and this release knows version %d: use a release that knows both, or another namespace",
			s.keys.ns, found, Schema)}
	}
	return nil
}
