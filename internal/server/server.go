package server

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/blobs"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/groups"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/periodics"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/redisstate/programs"
	"github.com/tdf-framework/tdf/redisstate/stages"
)

// Store lists the methods of a redisstate store and its parts that a server uses.
type Store interface {
	settleStore
	auditStore
	watchStore
	aheadStore
	programStore
	linkStore
	heldStore
	haltStore
	historyStore
	periodicStore
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
	NextDue(ctx context.Context) (next, now task.Time, err error)
	ServerHeartbeat(ctx context.Context, name string, now task.Time) error
	WakeServer() *conn.Waker
}

// StoreOf returns what a server uses of a store.
func StoreOf(s *redisstate.Store) Store {
	return struct {
		*redisstate.Store
		link
		blobs.Blobs
		*counts.Counters
		dependencies.Links
		groups.Groups
		*limits.Limiter
		periodics.Periodics
		*presence.Presence
		*programs.Archives
		audit.Auditor
		stages.Stages
	}{
		s, s.Conn, s.Blobs, s.Counters, dependencies.Of(s), s.Groups, &s.Limits, periodics.Of(s), s.Presence, s.Programs,
		audit.Of(s), stages.Of(s),
	}
}

// A Server settles the tasks of one namespace.
type Server struct {
	name    string
	cfg     config.Server
	store   Store
	log     *slog.Logger
	watch   watch
	ahead   ahead
	audit   auditor
	links   links
	history history
	clock   func() time.Time

	periodics knownPeriodics

	seen time.Time // time of the last heartbeat

	settled time.Time // start of the last search for due tasks
}

// An Option changes a Server that [New] creates.
type Option func(*Server)

// WithClock replaces the clock of this process. The server compares this clock with Redis's clock to notice leaps.
// Tests use WithClock together with a Redis whose clock they set.
func WithClock(now func() time.Time) Option {
	return func(s *Server) { s.clock, s.watch.clock = now, now }
}

// New returns a server. Its name identifies it in logs and in $ns:servers.
func New(name string, cfg config.Server, store *redisstate.Store, log *slog.Logger, options ...Option) *Server {
	return NewOn(name, cfg, StoreOf(store), log, options...)
}

// NewOn is [New] for a store that replaces some of the methods.
func NewOn(name string, cfg config.Server, store Store, log *slog.Logger, options ...Option) *Server {
	s := &Server{name: name, cfg: cfg, store: store, log: log, clock: time.Now}
	s.watch = watch{store: store, grace: task.For(cfg.OutageGrace), log: log, clock: time.Now}
	s.audit = auditor{store: store, grace: auditGrace, suspects: map[int64]suspicion{}}
	for _, option := range options {
		option(s)
	}
	return s
}

// Run settles and audits repeatedly until ctx ends. After an error of Redis, Run continues.
func (s *Server) Run(ctx context.Context) error {
	waker := s.store.WakeServer()
	defer waker.Close()
	for ctx.Err() == nil {
		begun := time.Now()
		done, err := s.RunOnce(ctx)
		for busy := done.Total() > 0; err == nil && ctx.Err() == nil && s.wait(ctx, waker, begun, busy); {
			more, failed, failure := s.settle(s.beating(ctx))
			busy = more.Total() > 0
			done.add(more)
			err = cmp.Or(failure, failed)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("round failed", "error", err)
			conn.Sleep(ctx, min(s.pause(), heartbeatPause))
		}
		if done.Total() > 0 {
			s.log.Info("round", done.attrs()...)
		}
	}
	return nil
}

// pause returns the maximum wait of an idle server. It is at least 10 ms, so that the server does not run a busy loop.
func (s *Server) pause() time.Duration { return max(s.cfg.RoundDuration, 10*time.Millisecond) }

// heartbeatPause is the maximum time between two heartbeats. It does not depend on round_duration. It is shorter than
// the constant absence, so that a new server sees that this server is running. Managers and tdf report a missing server
// after 10 s.
const heartbeatPause = time.Duration(rules.ServerAbsence * 2 / 5 * task.Seconds(time.Second))

// heartbeat stores the time of the watch's last look at Redis. The server has noticed all outages and leaps of the
// clock before that time (docs/operations.md, "Names of workers").
func (s *Server) heartbeat(ctx context.Context) error {
	s.seen = s.clock()
	return s.store.ServerHeartbeat(ctx, s.name, s.watch.last.clock.at)
}

// beating returns a context for the server's work. With it, the server sends a heartbeat after any call to Redis if one
// is due. So no loop, in the server or in its store, keeps the server from its heartbeats, however many pages it has.
// If a heartbeat fails, the one at the end of the work reports the error.
func (s *Server) beating(ctx context.Context) context.Context {
	return conn.Between(ctx, func() {
		if s.clock().Sub(s.seen) < heartbeatPause {
			return
		}
		s.seen = s.clock()
		if _, _, err := s.watch.look(ctx); err == nil {
			_ = s.heartbeat(ctx)
		}
	})
}

// settlePause is the shortest time between the starts of two searches for due tasks. If many results arrive, one search
// then settles several tasks, and needs less of Redis's time.
const settlePause = 5 * time.Millisecond

// stuckPause is how long the server waits after it could not settle a due task.
const stuckPause = 50 * time.Millisecond

// wait returns true when a task is due, and false when the server's round must end.
func (s *Server) wait(ctx context.Context, waker *conn.Waker, begun time.Time, busy bool) bool {
	left := s.pause() - time.Since(begun)
	if left <= 0 {
		return false
	}
	next, now, err := s.store.NextDue(ctx)
	if err != nil {
		return false
	}
	until := min(max(next.Sub(now).Std(), time.Millisecond), heartbeatPause)
	switch {
	case s.IsBehind():
		until = time.Millisecond
	case next <= now && !busy:
		until = stuckPause
	}
	woken := waker.Wait(ctx, min(until, left))
	s.links.woken = s.links.woken || woken
	conn.Sleep(ctx, settlePause-time.Since(s.settled))
	return woken || until < left && ctx.Err() == nil
}

// RunOnce does a whole round now: it settles due tasks, tells the dependents of complete groups, sends a heartbeat,
// pauses groups with too many failures, opens periodic tasks, and audits. It returns how many tasks it moved.
func (s *Server) RunOnce(ctx context.Context) (Done, error) {
	ctx = s.beating(ctx)
	s.links.looked = time.Time{}
	done, failed, err := s.settleAndReport(ctx)
	if err != nil {
		return done, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return done, err
	}
	failed = cmp.Or(failed, s.halt(ctx, now))
	failed = cmp.Or(failed, s.openPeriodic(ctx, now))
	s.keepHistory(ctx, now)
	more, err := s.runAudit(ctx, now)
	done.add(more)
	return done, cmp.Or(err, failed)
}

// IsBehind reports whether the last round has left work that another round can do at once.
func (s *Server) IsBehind() bool { return s.ahead.busy || s.links.behind }

// settleAndReport settles tasks, and then sends a heartbeat. If only the return of waiting tasks has failed, because a
// key has a wrong type, the server goes on with its other work, and failed is the error.
func (s *Server) settleAndReport(ctx context.Context) (done Done, failed, err error) {
	done, failed, err = s.settle(ctx)
	if err != nil {
		return done, failed, err
	}
	return done, failed, s.heartbeat(ctx)
}

// settle settles due tasks, and returns held tasks. If Redis's clock was set back, it also
// corrects tasks with times in the future.
func (s *Server) settle(ctx context.Context) (done Done, failed, err error) {
	s.settled = time.Now()
	done, err = s.settleDue(ctx)
	if err != nil {
		return done, failed, err
	}
	found, err := s.handleLinks(ctx, done.Total() > 0)
	if err != nil {
		return done, failed, err
	}
	if found {
		more, err := s.settleDue(ctx)
		done.add(more)
		if err != nil {
			return done, failed, err
		}
	}
	returned, failed := s.returnHeld(ctx)
	done.add(returned)
	if ctx.Err() != nil {
		return done, nil, failed
	}
	more, err := s.lookAhead(ctx)
	done.add(more)
	return done, failed, err
}
