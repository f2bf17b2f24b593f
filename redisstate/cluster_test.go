package redisstate_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// With the rights of docs/operations.md, a client finds the owner, waits while the nodes do not agree who that is, and
// follows the slot to another node, also when it waits for a wake token.
func TestCluster(t *testing.T) {
	t.Parallel()
	c, ns := redistest.StartCluster(t), redistest.Namespace(t)
	on := func(node *redistest.Server, command ...any) any {
		r := redistest.Client(t, redis.Options{Addr: node.Addr})
		return expect.Result(r.Do(t.Context(), command...).Result()).Value(t)
	}
	for _, n := range c.Nodes {
		on(n, "ACL", "SETUSER", "tdf", "on", ">pw", "resetchannels", "-@all", "~{"+ns+"}:*", "+@read", "+@write",
			"+@scripting", "+@blocking", "+@connection", "+info", "+time")
	}
	at := config.Redis{Cluster: c.Addrs()[5:], Username: "tdf", Password: "pw"}
	log, lines := logged()
	s := expect.Result(redisstate.Connect(t.Context(), at, ns, log)).Value(t)
	t.Cleanup(func() { s.Close() })
	key := s.Keys.Schema()
	expect.Equal(t, key, "{"+ns+"}:schema")
	ids := mustOpen(t, s, define("a"))

	owner, other := c.Owner(key), c.Other(key)
	slot := on(owner, "CLUSTER", "KEYSLOT", key)
	wakes := s.Conn.Waker(func() []string { return []string{s.Keys.WakeOpen()} }, nil)
	t.Cleanup(func() { wakes.Close() })
	waited := make(chan bool)
	go func() { waited <- wakes.Wait(t.Context(), time.Hour) }()
	c.Move(key, other)
	expect.True(t, <-waited, "a moved slot counts as a token")
	mustOpen(t, s, define("b"))
	expect.True(t, wakes.Wait(t.Context(), time.Hour), "a token at the other node")
	expect.Equal(t, expect.Result(s.ReadOne(t.Context(), ids[0], redisstate.Want{Fields: redisstate.Whole})).Value(t).Task.Input, "a")
	expect.Contains(t, <-lines, "redis has another primary")

	on(other, "FLUSHALL") // a node gives up no slot with keys
	on(other, "CLUSTER", "SETSLOT", slot, "NODE", on(owner, "CLUSTER", "MYID"))
	called := make(chan error)
	go func() { _, err := s.Counts(t.Context()); called <- err }()
	for line := ""; !strings.Contains(line, "redis cannot be used"); line = <-lines {
	}
	on(owner, "CLUSTER", "SETSLOT", slot, "NODE", on(owner, "CLUSTER", "MYID"))
	must(t, <-called)
}

// Over TLS, a client follows the nodes' addresses, and the certificate of each must be valid.
func TestClusterOverTLS(t *testing.T) {
	t.Parallel()
	c, ns := redistest.StartCluster(t), redistest.Namespace(t)
	cert, key := selfSigned(t, t.TempDir(), "redis.example")
	gates := nodesOverTLS(t, c, expect.Result(tls.LoadX509KeyPair(cert, key)).Value(t))
	at := config.Redis{Cluster: gates[5:], TLS: true, TLSCA: cert, TLSServerName: "redis.example"}
	log, lines := logged()
	s := expect.Result(redisstate.Connect(t.Context(), at, ns, log)).Value(t)
	t.Cleanup(func() { s.Close() })
	mustOpen(t, s, define("a"))
	c.Move(s.Keys.Schema(), c.Other(s.Keys.Schema()))
	mustOpen(t, s, define("b"))
	expect.Contains(t, <-lines, "redis has another primary")

	at.TLSServerName = "another.example"
	expect.Result(redisstate.Connect(t.Context(), at, ns, quiet)).Fails(t, "x509")
	at = config.Redis{Cluster: c.Addrs()[5:], TLS: true, TLSCA: cert}
	waits, cancel := context.WithCancel(t.Context())
	log, lines = logged()
	ended := make(chan error)
	go func() { _, err := redisstate.Connect(waits, at, ns, log); ended <- err }()
	for line := ""; !strings.Contains(line, "does this Redis speak TLS?"); line = <-lines {
	}
	cancel()
	expect.Fails(t, <-ended, "canceled")
}

// nodesOverTLS returns the addresses of gates that need TLS. The nodes then name such gates.
func nodesOverTLS(t *testing.T, c *redistest.Cluster, certificate tls.Certificate) (addrs []string) {
	var gates []*redistest.Gate
	var names []string
	for _, node := range c.Nodes {
		gate := redistest.NewGate(t, node.Addr, certificate)
		gates, addrs = append(gates, gate), append(addrs, gate.Addr)
		names = append(names, portOf(node.Addr), portOf(gate.Addr))
	}
	for _, gate := range gates {
		gate.Alter(strings.NewReplacer(names...).Replace)
	}
	return addrs
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
