package redisstate_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
)

// A component ends at its start if the sentinels refuse it, with the rights of docs/operations.md it works, and without
// an answer from a sentinel it asks the others. All of this also holds over TLS. If no sentinel listens, it waits.
func TestSentinels(t *testing.T) {
	t.Parallel()
	ns, group := redistest.Namespace(t), redistest.StartSentinel(t)
	for _, addr := range group.Addrs() {
		c := redistest.Client(t, redis.Options{Addr: addr})
		must(t, c.Do(t.Context(), words(sentinelUser)...).Err())
	}
	cert, key := selfSigned(t, t.TempDir(), "redis.example")
	secure := config.Redis{
		Sentinels: overTLS(t, group, expect.Result(tls.LoadX509KeyPair(cert, key)).Value(t)), Master: redistest.Master,
		TLS: true, TLSCA: cert, TLSServerName: "redis.example",
	}
	for _, plain := range []config.Redis{{Sentinels: group.Addrs(), Master: redistest.Master}, secure} {
		for name, c := range map[string]struct {
			change func(r *config.Redis)
			reason string
		}{
			"another name": {
				func(r *config.Redis) { r.Master = "another" },
				"the sentinels know no master of this name: see [redis] sentinels",
			},
			"wrong password": {
				func(r *config.Redis) { r.SentinelUsername, r.SentinelPassword = "tdf", "wrong" },
				"a sentinel refuses this client: the password (or the username) is wrong: see [redis] sentinel_password",
			},
		} {
			at := plain
			c.change(&at)
			_, err := redisstate.Connect(t.Context(), at, ns, quiet)
			of := "redis at master " + at.Master + " of sentinels " + strings.Join(at.Sentinels, ", ")
			expect.Fails(t, err, of+": "+c.reason, name)
		}
		s := expect.Result(redisstate.Connect(t.Context(), plain, ns, quiet)).Value(t)
		expect.Result(s.Now(t.Context())).Value(t)
		s.Close()
	}
	secure.TLSServerName = "another.example"
	_, err := redisstate.Connect(t.Context(), secure, ns, quiet)
	expect.Fails(t, err, "x509")

	away := config.Redis{Sentinels: []string{redistest.FreeAddr(t)}, Master: redistest.Master}
	waits, cancel := context.WithCancel(t.Context())
	var log testlog.Buffer
	ended := make(chan error, 1)
	go func() {
		_, err := redisstate.Connect(waits, away, ns, slog.New(slog.NewTextHandler(&log, nil)))
		ended <- err
	}()
	expect.Eventually(t, "the client waits", func() bool {
		return strings.Contains(log.String(), "nothing listens there (connection refused)")
	})
	cancel()
	expect.Fails(t, <-ended, "canceled")

	one := config.Redis{
		Sentinels: group.Addrs()[:1], Master: redistest.Master, // the client learns the addresses of the others
		SentinelUsername: "tdf", SentinelPassword: "pw",
	}
	s := expect.Result(redisstate.Connect(t.Context(), one, ns, quiet)).Value(t)
	defer s.Close()
	group.All[0].Signal(syscall.SIGSTOP)
	must(t, s.Conn.Redis.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "no").Err())
	expect.Result(s.Now(t.Context())).Value(t)
}

// overTLS returns the addresses of gates that need TLS. The sentinels then name such gates.
func overTLS(t *testing.T, group *redistest.Sentinels, certificate tls.Certificate) (addrs []string) {
	var gates []*redistest.Gate
	var names []string
	for i, sentinel := range group.All {
		gate := redistest.NewGate(t, sentinel.Addr, certificate)
		node := redistest.NewGate(t, group.Nodes[i].Addr, certificate)
		gates, addrs = append(gates, gate), append(addrs, gate.Addr)
		names = append(names, portOf(group.Gates[i].Addr), portOf(node.Addr), portOf(sentinel.Addr), portOf(gate.Addr))
	}
	for _, gate := range gates {
		gate.Alter(strings.NewReplacer(names...).Replace)
	}
	return addrs
}

// sentinelUser makes the user of docs/operations.md.
const sentinelUser = "ACL SETUSER tdf on >pw resetchannels &+switch-master &+replica-reconf-done -@all +hello " +
	"+auth +ping +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels"

func words(text string) (all []any) {
	for _, word := range strings.Fields(text) {
		all = append(all, word)
	}
	return all
}
