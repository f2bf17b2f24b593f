package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// Store is what a server needs of Redis.
type Store interface {
	settler
	auditor
	watched
	seer
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
	NextDue(ctx context.Context) (tdf.Time, error)
	ServerHeartbeat(ctx context.Context, name string, now tdf.Time) error
	WakeServer() *redisstate.Waker
}

// A Server settles the tasks of one namespace.
type Server struct {
	name  string
	cfg   config.Server
	store Store
	log   *slog.Logger
	watch watch
	ahead ahead
	audit audit
	seen  time.Time // when Redis was told last that the server is there
}

// New returns a server of that name; names only tell servers apart in logs and in $ns:servers.
func New(name string, cfg config.Server, store Store, log *slog.Logger) *Server {
	s := &Server{name: name, cfg: cfg, store: store, log: log}
	s.watch = watch{store: store, grace: tdf.For(cfg.OutageGrace), log: log}
	s.audit = audit{store: store, grace: tdf.For(cfg.AuditGrace), suspects: map[int64]suspicion{}}
	return s
}

// Run makes rounds until ctx ends. Nothing that Redis does ends it.
func (s *Server) Run(ctx context.Context) error {
	waker := s.store.WakeServer()
	defer waker.Close()
	for ctx.Err() == nil {
		begun := time.Now()
		done, err := s.RunOnce(ctx)
		for busy := done.Total() > 0 || s.ahead.busy; err == nil && ctx.Err() == nil && s.wait(ctx, waker, begun, busy); {
			var more Done
			more, err = s.settle(ctx)
			busy = more.Total() > 0 || s.ahead.busy
			done.add(more)
			if err == nil && time.Since(s.seen) >= signPause {
				err = s.sign(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("the round was cut short", "error", err)
			waitFor(ctx, min(s.pause(), signPause))
		}
		if done.Total() > 0 {
			s.log.Info("round", done.attrs()...)
		}
	}
	return nil
}

// pause is how long an idle server waits at most; never so short that it would spin.
func (s *Server) pause() time.Duration { return max(s.cfg.RoundDuration, 10*time.Millisecond) }

// signPause is how long a server is silent at most, however long its rounds are: less than what others take for an [absence], so
// that a server that is started beside it sees it, and much less than the 10 s after which managers and tdf miss it.
const signPause = time.Duration(tdf.ServerAbsence * 2 / 5 * tdf.Seconds(time.Second))

// sign tells Redis that the server is there: that it was when it looked last, and has seen all that happened
// to Redis before (docs/operations.md, "Names of workers").
func (s *Server) sign(ctx context.Context) error {
	s.seen = time.Now()
	return s.store.ServerHeartbeat(ctx, s.name, s.watch.last.clock.at)
}

// reluctance is the pause after something was due and nothing could be done about it.
const reluctance = 50 * time.Millisecond

// wait returns true when something is to be settled before the round is over, and false at its end.
func (s *Server) wait(ctx context.Context, waker *redisstate.Waker, begun time.Time, busy bool) bool {
	left := s.pause() - time.Since(begun)
	if left <= 0 {
		return false
	}
	next, err := s.store.NextDue(ctx)
	if err != nil {
		return false
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return false
	}
	until := min(max(next.Sub(now).Std(), time.Millisecond), signPause)
	switch {
	case s.ahead.busy:
		until = time.Millisecond
	case next <= now && !busy:
		until = reluctance
	}
	if until < left {
		waker.Wait(ctx, until)
		return ctx.Err() == nil
	}
	return waker.Wait(ctx, left)
}

// RunOnce makes one round and returns what it did.
func (s *Server) RunOnce(ctx context.Context) (Done, error) {
	done, err := s.settle(ctx)
	if err != nil {
		return done, err
	}
	if err := s.sign(ctx); err != nil {
		return done, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return done, err
	}
	more, err := s.audited(ctx, now)
	done.add(more)
	return done, err
}

// settle settles what is due, and looks ahead where the clock was set back.
func (s *Server) settle(ctx context.Context) (Done, error) {
	done, err := s.settleDue(ctx)
	if err != nil {
		return done, err
	}
	more, err := s.lookAhead(ctx)
	done.add(more)
	return done, err
}

func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
