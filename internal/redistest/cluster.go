package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// A Cluster is a Redis Cluster with three primaries and a replica of each.
type Cluster struct {
	Nodes []*Server // first the primaries at the start, then a replica of each, in the same order

	t     testing.TB
	gates []nodeGates // of the nodes, in the same order; empty if they reach each other directly
}

// The gates of a node are the addresses that it announces, for clients and replicas, and for the cluster bus.
type nodeGates struct{ clients, bus *Gate }

// StartCluster starts a cluster. It promotes no replica before [Cluster.Promote]. It ends with the test.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	return startCluster(t, false, opts)
}

// StartGatedCluster is like [StartCluster], but the nodes reach each other through gates, so that [Cluster.Part] can
// cut one off. Clients at 127.0.0.1 reach all nodes.
func StartGatedCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	return startCluster(t, true, opts)
}

func startCluster(t testing.TB, gated bool, opts []Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	opts = append(slices.Clone(opts), Replicates, Args("--cluster-enabled", "yes", "--cluster-node-timeout", soon))
	for i := range 6 {
		c.Nodes = append(c.Nodes, Start(t, opts...))
		if gated {
			c.gate(i)
		}
	}
	for i, n := range c.Nodes {
		c.do(n, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < 3 {
			c.do(n, "CLUSTER", "ADDSLOTSRANGE", slots*i/3, slots*(i+1)/3-1)
		}
		for _, other := range c.Nodes[:i] {
			c.do(other, append([]any{"CLUSTER", "MEET"}, c.announced(i)...)...)
		}
	}
	for _, n := range c.Nodes {
		awaitReply(t, n.Addr, " connected", 6, "CLUSTER", "NODES")
		awaitReply(t, n.Addr, "cluster_slots_ok:"+strconv.Itoa(slots), 1, "CLUSTER", "INFO")
	}
	for i, n := range c.Nodes[3:] {
		c.do(n, "CLUSTER", "REPLICATE", c.id(c.Nodes[i]))
	}
	for i, n := range c.Nodes {
		awaitReply(t, n.Addr, "cluster_state:ok", 1, "CLUSTER", "INFO")
		awaitReply(t, n.Addr, "slave ", 3, "CLUSTER", "NODES")
		if i < 3 {
			c.AwaitReplica(n)
		}
	}
	c.Settle()
	return c
}

// gate makes a node announce gates, and connect from a host of its own.
func (c *Cluster) gate(i int) {
	n := c.Nodes[i]
	c.gates = append(c.gates, nodeGates{NewGate(c.t, n.Addr), NewGate(c.t, busOf(n.Addr))})
	at := c.announced(i)
	n.args = append(n.args, "--bind-source-addr", NodeHost(i), "--cluster-announce-ip", fmt.Sprint(at[0]),
		"--cluster-announce-port", fmt.Sprint(at[1]), "--cluster-announce-bus-port", fmt.Sprint(at[2]))
	n.Restart()
}

// busOf returns the address of a node's cluster bus.
func busOf(addr string) string {
	host, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	return net.JoinHostPort(host, strconv.Itoa(port+10000))
}

// announced returns the host and the ports at which others reach a node.
func (c *Cluster) announced(i int) []any {
	addr, bus := c.Nodes[i].Addr, busOf(c.Nodes[i].Addr)
	if len(c.gates) > 0 {
		addr, bus = c.gates[i].clients.Addr, c.gates[i].bus.Addr
	}
	host, port, _ := net.SplitHostPort(addr)
	_, busPort, _ := net.SplitHostPort(bus)
	return []any{host, port, busPort}
}

// Part cuts a node off from all others, until the returned function is called.
func (c *Cluster) Part(node *Server) (end func()) {
	for i := range c.Nodes {
		for j := range c.Nodes {
			if i != j && (c.Nodes[i] == node || c.Nodes[j] == node) {
				c.gates[i].clients.Shut(NodeHost(j))
				c.gates[i].bus.Shut(NodeHost(j))
			}
		}
	}
	return func() {
		for _, g := range c.gates {
			g.clients.Open()
			g.bus.Open()
		}
	}
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() (all []string) {
	for _, n := range c.Nodes {
		all = append(all, n.Addr)
	}
	return all
}

// Owner returns the node that owns the slot of a key, or nil if none is known. It asks the first node that answers,
// except for some nodes.
func (c *Cluster) Owner(key string, except ...*Server) *Server {
	c.t.Helper()
	for _, n := range c.Nodes {
		if slices.Contains(except, n) {
			continue
		}
		if owner, err := c.ownerAt(n, key); err == nil {
			return owner
		}
	}
	return nil
}

// AwaitOwner waits until all nodes know that a node owns the slot of a key.
func (c *Cluster) AwaitOwner(key string, owner *Server) {
	c.t.Helper()
	for _, n := range c.Nodes {
		expect.Eventually(c.t, n.Addr+" knows the owner", func() bool {
			known, err := c.ownerAt(n, key)
			return err == nil && known == owner
		})
	}
}

// ownerAt returns the node that owns the slot of a key, as a node knows it, or nil if it knows none.
func (c *Cluster) ownerAt(n *Server, key string) (*Server, error) {
	c.t.Helper()
	at, err := c.reply(n, "CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	slot := c.slot(n, key)
	for _, r := range at.([]any) {
		r := r.([]any)
		if from, to := r[0].(int64), r[1].(int64); from <= slot && slot <= to {
			port := r[2].([]any)[1].(int64)
			return c.at(strconv.FormatInt(port, 10)), nil
		}
	}
	return nil, nil
}

// AwaitReplica waits until the replica of a primary is online.
func (c *Cluster) AwaitReplica(primary *Server) {
	c.t.Helper()
	awaitReply(c.t, primary.Addr, "state=online", 1, "INFO", "replication")
}

// Other returns a primary that does not own the slot of a key.
func (c *Cluster) Other(key string) *Server {
	c.t.Helper()
	owner := c.Owner(key)
	return c.Nodes[slices.IndexFunc(c.Nodes, func(n *Server) bool {
		return n != owner && strings.Contains(fmt.Sprint(c.do(n, "ROLE")), "master")
	})]
}

func (c *Cluster) at(port string) *Server {
	for i, n := range c.Nodes {
		if c.announced(i)[1] == port {
			return n
		}
	}
	return nil
}

// Migrate makes the slot of a key begin to move to another primary. No key moves yet.
func (c *Cluster) Migrate(key string, to *Server) {
	c.t.Helper()
	from, slot := c.Owner(key), c.slot(to, key)
	c.do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(from))
	c.do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(to))
}

// Stay ends what Migrate has begun.
func (c *Cluster) Stay(key string, to *Server) {
	c.t.Helper()
	for _, n := range []*Server{c.Owner(key), to} {
		c.do(n, "CLUSTER", "SETSLOT", c.slot(n, key), "STABLE")
	}
}

// Move moves the slot of a key to another primary, a few keys at a time, as redis-cli does. It returns the number of
// keys that it has moved.
func (c *Cluster) Move(key string, to *Server) (moved int) {
	c.t.Helper()
	from, slot := c.Owner(key), c.slot(to, key)
	host, port, _ := net.SplitHostPort(to.Addr)
	c.Migrate(key, to)
	for {
		found := c.do(from, "CLUSTER", "GETKEYSINSLOT", slot, 10).([]any)
		if len(found) == 0 {
			break
		}
		c.do(from, append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, found...)...)
		moved += len(found)
	}
	for _, n := range append([]*Server{to, from}, c.Nodes...) {
		_, _ = c.reply(n, "CLUSTER", "SETSLOT", slot, "NODE", c.id(to)) // replicas refuse it
	}
	c.AwaitOwner(key, to)
	return moved
}

// The times, in milliseconds, after which the cluster promotes the replica of a primary that does not answer. The nodes
// also exchange their news more often with a short time. No test takes the long one.
const soon, never = "2000", "3600000"

// Promote makes the cluster promote the replica of a primary that does not answer for 2 s. Settle ends that.
func (c *Cluster) Promote() { c.timeout(soon) }
func (c *Cluster) Settle()  { c.timeout(never) }

func (c *Cluster) timeout(ms string) {
	c.t.Helper()
	for _, n := range c.Nodes {
		_, _ = c.reply(n, "CONFIG", "SET", "cluster-node-timeout", ms) // a lost node does not answer
	}
}

func (c *Cluster) slot(n *Server, key string) int64 {
	c.t.Helper()
	return c.do(n, "CLUSTER", "KEYSLOT", key).(int64)
}

func (c *Cluster) id(n *Server) string {
	c.t.Helper()
	return fmt.Sprint(c.do(n, "CLUSTER", "MYID"))
}

func (c *Cluster) do(n *Server, command ...any) any {
	c.t.Helper()
	reply, err := c.reply(n, command...)
	if err != nil {
		c.t.Fatalf("%s: %v: %v", n.Addr, command, err)
	}
	return reply
}

func (c *Cluster) reply(n *Server, command ...any) (any, error) {
	r := redis.NewClient(&redis.Options{Addr: n.Addr, Protocol: 2, MaxRetries: -1})
	defer r.Close()
	return r.Do(c.t.Context(), command...).Result()
}

// awaitReply waits until the reply to a command contains a text n times.
func awaitReply(t testing.TB, addr, text string, n int, command ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	defer c.Close()
	var reply string
	expect.Eventually(t, fmt.Sprint(command, " of ", addr), func() bool {
		var err error
		reply, err = c.Do(t.Context(), command...).Text()
		return err == nil && strings.Count(reply, text) == n
	}, func() any { return reply })
}
