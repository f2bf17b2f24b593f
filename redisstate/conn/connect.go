package conn

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// A Conn is one client of a namespace: its connections to Redis, and what it knows about this Redis. Many goroutines
// may use it at the same time.
type Conn struct {
	Keys    keys.Names
	Redis   *redis.Client
	options *redis.Options
	Addr    string
	Log     *slog.Logger
	boot    string // boot id: random, and part of the names of this client's keys
	Calls   callSlots
	Clock   Clock
	IDs     IDs

	// ReportUnknown makes calls return an *[UnknownError] instead of repeating the call. Set it before the first
	// call.
	ReportUnknown bool
	replicas      config.Replicas

	outages     atomic.Int64
	unconfirmed atomic.Int64
	latencies   latencies
	dials       atomic.Int64
	// the replication id of Redis (string) at the last call of fence; see fence.go
	history atomic.Value
	// the address (string) that the sentinels gave last, or that of the owner in a cluster
	primary   atomic.Value
	cluster   *cluster                                   // nil without one
	sentinels func(context.Context) (known, working int) // nil without sentinels

	checking     chan struct{} // holds an element while the method Ready checks Redis
	connected    atomic.Bool   // a check of Redis and the namespace has succeeded
	flags        atomic.Bool   // Redis knows script flags
	scriptWorked atomic.Bool   // a script has succeeded
	taskMoved    atomic.Bool   // a script that moves tasks has succeeded
	scanRefused  atomic.Bool   // the user lacks the right to SCAN
	confirmable  atomic.Bool   // the key that confirmed calls renew exists
}

// New returns a Conn for a namespace. It checks the configuration, but does not connect. The first method call connects
// and does the checks of [Conn.Ready].
func New(cfg config.Redis, namespace string, log *slog.Logger) (*Conn, error) {
	options, err := clientOptions(cfg)
	if err != nil {
		return nil, err
	}
	silenceDriver()
	s := &Conn{
		Keys: keysOf(cfg, namespace), Addr: cfg.Addr(), Log: log, boot: rand.Text(), options: options,
		replicas: inBounds(cfg.Replicas), checking: make(chan struct{}, 1),
	}
	options.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		s.dials.Add(1)
		return s.fence(ctx, c)
	}
	switch {
	case len(cfg.Sentinels) > 0:
		s.Redis = s.failoverClient(cfg)
	case len(cfg.Cluster) > 0:
		s.Redis = s.clusterClient(cfg)
	default:
		s.Redis = redis.NewClient(options)
	}
	return s, nil
}

func keysOf(cfg config.Redis, namespace string) keys.Names {
	if len(cfg.Cluster) > 0 {
		return keys.InCluster(namespace)
	}
	return keys.Of(namespace)
}

// Dials returns the number of connections that the client has made so far.
func (s *Conn) Dials() int64 { return s.dials.Load() }

// silenceDriver stops go-redis from writing connection errors to stderr. A Conn logs these errors itself.
var silenceDriver = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close removes the record of this client's calls, and closes the connections. After an outage, the record stays until
// it expires: a call that is still on its way must find its answer there.
func (s *Conn) Close() error {
	if s.connected.Load() && s.Calls.hasSlots() && s.Outages() == 0 {
		ctx, end := context.WithTimeout(context.Background(), time.Second)
		s.Redis.Unlink(ctx, s.Keys.Calls(s.boot)) // best effort: the record expires anyway
		end()
	}
	return s.Redis.Close()
}

// Boot returns the boot id of this client. It is random, and each Conn has its own.
func (s *Conn) Boot() string { return s.boot }

func clientOptions(cfg config.Redis) (*redis.Options, error) {
	options := &redis.Options{
		Network: cfg.Network(), Addr: cfg.Addr(),
		Username: cfg.Username, Password: cfg.Password, DB: cfg.DB,
		Protocol:              2,
		MaxRetries:            -1, // the method retry repeats calls instead
		ContextTimeoutEnabled: true,
		DialTimeout:           5 * time.Second,
		ReadTimeout:           longestReply, // see idleTimeoutConn
		WriteTimeout:          longestReply,
		PoolTimeout:           idleTimeout + time.Second,
		DialerRetries:         1,
		DisableIdentity:       true,
	}
	if cfg.TLS {
		if err := addTLS(options, cfg); err != nil {
			return nil, err
		}
	} else {
		options.CredentialsProvider = cfg.Credentials()
	}
	options.Dialer = dialer(idleTimeoutDialer(options, cfg.TLSCA), nil)
	return options, nil
}
