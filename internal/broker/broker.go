package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/blobs"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/redisstate/programs"
)

// common lists what workers in this process and in others need of a *redisstate.Store and of its parts.
type common interface {
	Now(ctx context.Context) (task.Time, error)
	RoundsOpen(ctx context.Context) error
	Workers(ctx context.Context) ([]presence.WorkerStatus, error)
	GiveUp(ctx context.Context, name string, before task.Time) (int, error)
	WakeWorker(offer *class.Offer, free func() class.Capacities) *conn.Waker
	Renew(ctx context.Context, lease task.Seconds, renewals ...redisstate.LeaseRenewal) (redisstate.RenewResult, error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	ReadOne(ctx context.Context, id int64, want redisstate.Want) (redisstate.Stored, error)
	Execute(ctx context.Context, worker string, results ...rules.Move) ([]redisstate.Outcome, error)
	Room(ctx context.Context) (settings task.Settings, invalid error, m task.Memory, err error)
	FailedToStart(ctx context.Context, worker, source string, alone bool, program, why string) error
	CheckNamed(ctx context.Context, definitions []task.Properties) error
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
	EachDependency(ctx context.Context, id int64, do func(redisstate.Stored) bool) (more int, err error)
}

// store lists what a Broker needs of them.
type store interface {
	common
	CheckShare(ctx context.Context, owner string) error
	Worker(ctx context.Context, name string) (presence.WorkerStatus, bool, task.Time, error)
	NamesUnder(ctx context.Context, prefix string, enough int) (int, error)
	Register(ctx context.Context, w presence.WorkerInfo) (drained string, giveUp task.Time, err error)
	Beat(ctx context.Context, name, boot string, b presence.HeartbeatChanges) (drained string, err error)
	ClaimCall(ctx context.Context, session string, number int64) (*redisstate.ClaimCall, error)
	Claim(ctx context.Context, r redisstate.ClaimParams) (redisstate.ClaimResult, error)
	ProgramPart(ctx context.Context, sha256 string, from, most int64) (part []byte, size int64, err error)
}

// whole has what brokers need of a store and of its parts.
type whole struct {
	*redisstate.Store
	link
	dependencies.Links
	*presence.Presence
	*programs.Archives
	blobs.Blobs
	*limits.Limiter
}

// link is what a broker asks of the connection to Redis.
type link interface {
	Outages() int64
	Confirms(ctx context.Context) bool
}

// WholeOf returns what a [Direct] needs of a store and of its parts.
func WholeOf(s *redisstate.Store) DirectStore { return wholeOf(s) }

func wholeOf(s *redisstate.Store) whole {
	return whole{s, s.Conn, dependencies.Of(s), s.Presence, s.Programs, s.Blobs, &s.Limits}
}

// Options configure a [Broker].
type Options struct {
	Answer time.Duration // how long a claim waits for an answer of Redis
	Log    *slog.Logger
}

// A Broker serves workers in other processes. Several goroutines may use it at once.
type Broker struct {
	store    store
	o        Options
	givingUp chan struct{} // a lock

	mu        sync.Mutex
	waitlists map[string]*waitlist   // by token and offer
	waiting   map[string]*time.Timer // by session, those that end the claim of a worker with resources

	wakers  *pool.Pool // of the waitlists that have one
	polling sync.Mutex // of the other waitlists
}

// New returns a Broker.
func New(s *redisstate.Store, o Options) *Broker {
	return &Broker{
		store: wholeOf(s), o: o, givingUp: make(chan struct{}, 1), waitlists: map[string]*waitlist{},
		waiting: map[string]*time.Timer{},
		wakers:  pool.New(mostWakers),
	}
}
