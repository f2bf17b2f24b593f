package redisstate

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// With the rights of docs/operations.md, a client finds the owner, waits while the nodes do not agree who that is, and
// follows the slot to another node, also when it waits for a wake token.
func TestCluster(t *testing.T) {
	t.Parallel()
	c, ns := redistest.StartCluster(t), redistest.Namespace(t)
	on := func(node *redistest.Server, command ...any) any {
		r := redis.NewClient(&redis.Options{Addr: node.Addr, Protocol: 2})
		defer r.Close()
		return expect.Result(r.Do(t.Context(), command...).Result()).Value(t)
	}
	for _, n := range c.Nodes {
		on(n, "ACL", "SETUSER", "tdf", "on", ">pw", "resetchannels", "-@all", "~{"+ns+"}:*", "+@read", "+@write",
			"+@scripting", "+@blocking", "+@connection", "+info", "+time")
	}
	at := config.Redis{Cluster: c.Addrs()[5:], Username: "tdf", Password: "pw"}
	log, lines := logged()
	s := expect.Result(Connect(t.Context(), at, ns, log)).Value(t)
	t.Cleanup(func() { s.Close() })
	key := s.Keys.Schema()
	expect.Equal(t, key, "{"+ns+"}:schema")
	ids := mustOpen(t, s, define("a"))

	owner, other := c.Owner(key), c.Other(key)
	slot := on(owner, "CLUSTER", "KEYSLOT", key)
	wakes := s.Waker(func() []string { return []string{s.Keys.WakeOpen()} })
	t.Cleanup(func() { wakes.Close() })
	waited := make(chan bool)
	go func() { waited <- wakes.Wait(t.Context(), time.Hour) }()
	c.Move(key, other)
	expect.True(t, <-waited, "a moved slot counts as a token")
	mustOpen(t, s, define("b"))
	expect.True(t, wakes.Wait(t.Context(), time.Hour), "a token at the other node")
	expect.Equal(t, expect.Result(s.ReadOne(t.Context(), ids[0], Want{Fields: Whole})).Value(t).Task.Input, "a")
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
