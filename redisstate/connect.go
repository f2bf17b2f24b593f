package redisstate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/config"
)

// Schema is the version of the layout that this release writes.
const Schema = 1

// A Store is one client of a namespace. It may be used by many goroutines.
type Store struct {
	keys    Keys
	rdb     *redis.Client
	options *redis.Options
	addr    string
	log     *slog.Logger
	boot    string // names this client in keys of its own
	calls   callers
	scripts scripts
	outages atomic.Int64
	waiting waitingManagers
	dials   atomic.Int64
}

// Connect opens a namespace. A Redis that is not there, or not ready, is waited for until
// ctx ends; one that cannot be used at all is a *[RefusedError].
func Connect(ctx context.Context, cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	options, err := clientOptions(cfg)
	if err != nil {
		return nil, err
	}
	silenceDriver()
	s := &Store{
		keys: Keys{ns: namespace}, addr: cfg.Addr(), log: log, boot: rand.Text(), options: options,
	}
	options.OnConnect = func(context.Context, *redis.Conn) error {
		s.dials.Add(1)
		return nil
	}
	s.rdb = redis.NewClient(options)
	if err := s.greet(ctx); err != nil {
		s.rdb.Close()
		return nil, err
	}
	return s, nil
}

// Dials counts the connections made so far.
func (s *Store) Dials() int64 { return s.dials.Load() }

// silenceDriver keeps go-redis from writing to stderr that it could not dial: persist tells
// that once, and in the words of the log it was given.
var silenceDriver = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// ioTimeout is how long a command of usual size may take on its way.
const ioTimeout = 5 * time.Second

// Close ends the connections.
func (s *Store) Close() error { return s.rdb.Close() }

// slowest is the rate in bytes per second that a connection to Redis must have: what is large
// gets the time that it takes then, so that it is not sent again and again.
const slowest = 32 << 10

// patient returns the client, with the time-outs that so many bytes need.
func (s *Store) patient(bytes int) *redis.Client {
	if bytes < slowest {
		return s.rdb
	}
	return s.rdb.WithTimeout(ioTimeout + time.Duration(bytes)*time.Second/slowest)
}

// Boot names this client; each start of a process has another.
func (s *Store) Boot() string { return s.boot }

// Keys returns the names of the namespace's keys.
func (s *Store) Keys() Keys { return s.keys }

func clientOptions(cfg config.Redis) (*redis.Options, error) {
	options := &redis.Options{
		Addr:     cfg.Addr(),
		Username: cfg.Username, Password: cfg.Password, DB: cfg.DB,
		Protocol:              2,
		MaxRetries:            -1, // persist sends again, knowing what it does
		ContextTimeoutEnabled: true,
		DialTimeout:           5 * time.Second,
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,
		DialerRetries:         1,
		DisableIdentity:       true,
	}
	if !cfg.TLS {
		return options, nil
	}
	options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.TLSServerName}
	if options.TLSConfig.ServerName == "" {
		options.TLSConfig.ServerName = cfg.Host
	}
	if cfg.TLSCA != "" {
		pem, err := os.ReadFile(cfg.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("[redis] tls_ca: %w", err)
		}
		options.TLSConfig.RootCAs = x509.NewCertPool()
		if !options.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("[redis] tls_ca: %s holds no certificate in PEM form", cfg.TLSCA)
		}
	}
	return options, nil
}

// greet makes sure that what answers is a Redis that we can use, and that the namespace is ours.
func (s *Store) greet(ctx context.Context) error {
	err := s.persist(ctx, func(ctx context.Context) error { return s.rdb.Ping(ctx).Err() })
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
	err := s.persist(ctx, func(ctx context.Context) error {
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

// Info is what a Redis says about itself; all of it is empty for the embedded one.
type Info map[string]string

// RunID is another one each time Redis starts.
func (i Info) RunID() string { return i["run_id"] }

func (i Info) major() int {
	n, _, _ := strings.Cut(i["redis_version"], ".")
	v, _ := strconv.Atoi(n)
	return v
}

// Info asks Redis about itself.
func (s *Store) Info(ctx context.Context, sections ...string) (Info, error) {
	info := Info{}
	err := s.persist(ctx, func(ctx context.Context) error {
		text, err := s.rdb.Info(ctx, append([]string{"server"}, sections...)...).Result()
		if err != nil && (strings.Contains(err.Error(), "is not supported") || strings.Contains(err.Error(), "wrong number of arguments")) {
			return nil // the embedded one
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[name] = value
			}
		}
		return err
	})
	return info, err
}

// note writes what nobody's work depends on, such as who is there: a Redis that is full may
// leave it out.
func (s *Store) note(ctx context.Context, fill func(redis.Pipeliner)) error {
	return s.persist(ctx, func(ctx context.Context) error {
		p := s.rdb.Pipeline()
		fill(p)
		_, err := p.Exec(ctx)
		if err != nil && strings.HasPrefix(err.Error(), "OOM") {
			return nil
		}
		return err
	})
}

// pipeline sends reads, or writes that may be repeated, in one go.
func (s *Store) pipeline(ctx context.Context, fill func(redis.Pipeliner)) error {
	return s.persist(ctx, func(ctx context.Context) error {
		p := s.rdb.Pipeline()
		if fill(p); p.Len() == 0 {
			return nil
		}
		commands, _ := p.Exec(ctx)
		for _, c := range commands {
			if err := c.Err(); err != nil && err != redis.Nil && !isWrongType(err) {
				return err
			}
		}
		return nil
	})
}

// isWrongType: somebody put another kind of key where a task should be. To a reader it is not there.
func isWrongType(err error) bool { return strings.HasPrefix(err.Error(), "WRONGTYPE") }
