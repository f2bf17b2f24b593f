package redisstate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// A Store is one client of a namespace. Many goroutines may use it at the same time.
type Store struct {
	keys    keys.Names
	rdb     *redis.Client
	options *redis.Options
	addr    string
	log     *slog.Logger
	boot    string // boot id: random, and part of the names of this client's keys
	calls   callSlots
	link    linkSpeed
	pace    pace

	pauses knownPauses

	outages atomic.Int64
	waiting waitingManagers
	room    room
	used    usedPrograms
	dials   atomic.Int64

	checking     chan struct{} // holds an element while the method Ready checks Redis
	connected    atomic.Bool   // a check of Redis and the namespace has succeeded
	flags        atomic.Bool   // Redis knows script flags
	scriptWorked atomic.Bool   // a script has succeeded
	taskMoved    atomic.Bool   // a script that moves tasks has succeeded
	scanMissing  atomic.Bool   // the user lacks the right to SCAN
	scanRefused  sync.Once     // logs once that the user lacks the right to SCAN
}

// New returns a Store for a namespace. It checks the configuration, but does not connect. The first method call
// connects and does the checks of [Store.Ready].
func New(cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	options, err := clientOptions(cfg)
	if err != nil {
		return nil, err
	}
	silenceDriver()
	s := &Store{
		keys: keys.Of(namespace), addr: cfg.Addr(), log: log, boot: rand.Text(), options: options,
		checking: make(chan struct{}, 1),
		room:     room{reading: make(chan struct{}, 1), logged: map[roomWait]bool{}},
	}
	options.OnConnect = func(context.Context, *redis.Conn) error {
		s.dials.Add(1)
		return nil
	}
	s.rdb = redis.NewClient(options)
	return s, nil
}

// Connect returns a Store as soon as Redis answers and passes the checks of [Store.Ready]. It waits for Redis until ctx ends.
func Connect(ctx context.Context, cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	s, err := New(cfg, namespace, log)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		s.rdb.Close()
		return nil, err
	}
	return s, nil
}

// Dials returns the number of connections that the Store has made so far.
func (s *Store) Dials() int64 { return s.dials.Load() }

// silenceDriver stops go-redis from writing connection errors to stderr. The Store logs these errors itself.
var silenceDriver = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close removes the record of this client's calls, and closes the connections. After an outage, the record stays until
// it expires: a call that is still on its way must find its answer there.
func (s *Store) Close() error {
	if s.connected.Load() && s.calls.hasSlots() && s.Outages() == 0 {
		ctx, end := context.WithTimeout(context.Background(), time.Second)
		s.rdb.Unlink(ctx, s.keys.Calls(s.boot)) // best effort: the record expires anyway
		end()
	}
	return s.rdb.Close()
}

// Boot returns the boot id of this client. It is random, and each Store has its own.
func (s *Store) Boot() string { return s.boot }

// Keys returns the names of the namespace's keys.
func (s *Store) Keys() keys.Names { return s.keys }

func clientOptions(cfg config.Redis) (*redis.Options, error) {
	options := &redis.Options{
		Addr:     cfg.Addr(),
		Username: cfg.Username, Password: cfg.Password, DB: cfg.DB,
		Protocol:              2,
		MaxRetries:            -1, // the Store's method retry repeats calls instead
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
	options.Dialer = dialer(idleTimeoutDialer(options, idleTimeout))
	return options, nil
}

func addTLS(options *redis.Options, cfg config.Redis) error {
	options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.TLSServerName}
	if options.TLSConfig.ServerName == "" {
		options.TLSConfig.ServerName = cfg.Host
	}
	if cfg.TLSCA == "" {
		return nil
	}
	pem, err := os.ReadFile(cfg.TLSCA)
	if err != nil {
		return fmt.Errorf("read [redis] tls_ca: %w", err)
	}
	options.TLSConfig.RootCAs = x509.NewCertPool()
	if !options.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("read [redis] tls_ca: %s contains no certificate in PEM form", cfg.TLSCA)
	}
	return nil
}
