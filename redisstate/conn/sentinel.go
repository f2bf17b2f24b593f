package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
)

const (
	// sentinelTimeout is the time in which a sentinel must answer.
	sentinelTimeout = 2 * time.Second
	// primaryTimeout is the time for a connection to the primary, with the question for its address. It is so long that
	// a client leaves a sentinel that is lost, and asks the others: go-redis asks the present sentinel twice first.
	primaryTimeout = 20 * time.Second
)

// failoverClient returns a client that asks the sentinels for the primary whenever it connects. When a sentinel
// announces another primary, the client closes its connections to the old one.
func (s *Conn) failoverClient(cfg config.Redis) *redis.Client {
	o := s.options
	s.sentinels = func(ctx context.Context) (known, working int) {
		return countSentinels(ctx, cfg, &redis.Options{
			Username: cfg.SentinelUsername, Password: cfg.SentinelPassword, Protocol: o.Protocol, MaxRetries: o.MaxRetries,
			DialerRetries: o.DialerRetries, DisableIdentity: true, ContextTimeoutEnabled: true,
			Dialer:      idleTimeoutDialer(o, cfg.TLSCA),
			DialTimeout: sentinelTimeout, ReadTimeout: sentinelTimeout, WriteTimeout: sentinelTimeout,
		})
	}
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: cfg.Master, SentinelAddrs: cfg.Sentinels,
		SentinelUsername: cfg.SentinelUsername, SentinelPassword: cfg.SentinelPassword,
		Username: o.Username, Password: o.Password, DB: o.DB, Protocol: o.Protocol,
		MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries, PoolTimeout: o.PoolTimeout,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, DisableIdentity: o.DisableIdentity, TLSConfig: o.TLSConfig,
		DialTimeout: primaryTimeout, ReadTimeout: sentinelTimeout, WriteTimeout: sentinelTimeout,
		Dialer: idleTimeoutDialer(o, cfg.TLSCA), // for sentinels and primary
	})
	// The options that only the connections to the primary have. No connection exists yet.
	own := client.Options()
	ask := own.Dialer
	o.Dialer = dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := ask(ctx, network, addr)
		if err != nil {
			return nil, s.sentinelError(err)
		}
		s.seePrimary(c.RemoteAddr().String())
		return c, nil
	}, nil)
	own.Dialer, own.OnConnect, own.ReadTimeout, own.WriteTimeout = o.Dialer, o.OnConnect, o.ReadTimeout, o.WriteTimeout
	return client
}

// countSentinels asks the first configured sentinel that answers for the others. If none answers, none works.
func countSentinels(ctx context.Context, cfg config.Redis, o *redis.Options) (known, working int) {
	for _, addr := range cfg.Sentinels {
		o.Addr = addr
		client := redis.NewSentinelClient(o)
		others, err := client.Sentinels(ctx, cfg.Master).Result()
		_ = client.Close() // nothing was written
		if err != nil {
			continue
		}
		known, working = 1+len(others), 1
		for _, other := range others {
			if flags := other["flags"]; !strings.Contains(flags, "down") && !strings.Contains(flags, "disconnected") {
				working++
			}
		}
		return known, working
	}
	return len(cfg.Sentinels), 0
}

// sentinelError returns a *[RefusedError] if the sentinels answer, but know no primary, or refuse the client, or if TLS
// to them fails.
func (s *Conn) sentinelError(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return cmp.Or(refusal(s.Addr, err), err)
	}
	refused := &RefusedError{Addr: s.Addr, Err: err}
	if errors.Is(err, redis.Nil) {
		refused.Reason = "the sentinels know no master of this name: see [redis] sentinels"
		return refused
	}
	reason := refusedBy(reply.Error())
	if reason == "" {
		return err
	}
	refused.Reason = "a sentinel refuses this client: " + strings.ReplaceAll(reason, "[redis] password",
		"[redis] sentinel_password")
	return refused
}

// seePrimary logs the address of the primary if it has changed.
func (s *Conn) seePrimary(addr string) {
	if before := s.primary.Swap(addr); before != nil && before != addr {
		s.Log.Warn("redis has another primary", "redis", s.Addr, "before", before, "now", addr)
	}
}

// at returns the address of Redis for the log. With sentinels, or in a cluster, it says which primary they named last:
// during a failover, this one is lost.
func (s *Conn) at() string {
	if primary := s.primary.Load(); primary != nil {
		return fmt.Sprintf("%s (last primary %s)", s.Addr, primary)
	}
	return s.Addr
}
