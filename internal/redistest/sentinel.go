package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Master is the name of the primary at the sentinels of [StartSentinel].
const Master = "tdf"

// Sentinels are three sentinels with a primary and two replicas. The hosts of the nodes are the addresses from which
// they connect to each other. The sentinels have one host.
type Sentinels struct {
	All   []*Server // the sentinels; they cannot restart
	Nodes []*Server // the first is the primary at the start. A restarted node is a primary until the sentinels see it
	Gates []*Gate   // for each node, the address that it announces

	t testing.TB
}

// SentinelHost is the host from which sentinels connect.
const SentinelHost = "127.0.1.10"

// NodeHost returns the host from which a node connects.
func NodeHost(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i) }

// StartSentinel starts a primary, two replicas and three sentinels. If the primary does not answer for two seconds,
// the sentinels promote a replica. All of them end with the test.
//
// The sentinels ask replicas for their offsets each second, so the offsets that they compare are from after the
// primary's last write.
func StartSentinel(t testing.TB, opts ...Option) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	for i := range 3 {
		node := Start(t, append(slices.Clone(opts), Replicates, Args("--bind-source-addr", NodeHost(i)))...)
		s.Nodes, s.Gates = append(s.Nodes, node), append(s.Gates, NewGate(t, node.Addr))
		host, port, _ := net.SplitHostPort(s.Gates[i].Addr)
		node.args = append(node.args, "--replica-announce-ip", host, "--replica-announce-port", port)
		node.Restart()
		if i > 0 {
			s.follow(node)
		}
	}
	// a sentinel learns of replicas at once only if they are online when it starts
	s.AwaitReplicas(0)
	for range 3 {
		s.All = append(s.All, s.start())
	}
	s.AwaitSentinels()
	return s
}

// follow makes a node a replica of the first one.
func (s *Sentinels) follow(node *Server) {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: node.Addr, Protocol: 2})
	defer c.Close()
	host, port, _ := net.SplitHostPort(s.Gates[0].Addr)
	if err := c.ReplicaOf(s.t.Context(), host, port).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// start starts a sentinel, which keeps its state in a file.
func (s *Sentinels) start() *Server {
	s.t.Helper()
	addr, claim, err := freePort()
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	host, port, _ := net.SplitHostPort(addr)
	_, primary, _ := net.SplitHostPort(s.Gates[0].Addr)
	text := fmt.Sprintf("bind %s\nport %s\nbind-source-addr %s\nsentinel announce-ip %[1]s\n"+
		"sentinel monitor %[4]s %[1]s %[5]s 2\nsentinel down-after-milliseconds %[4]s 2000\n"+
		"sentinel failover-timeout %[4]s 2000\nsentinel parallel-syncs %[4]s 2\n",
		host, port, SentinelHost, Master, primary)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	p, err := launch(settings{dir: dir, args: []string{file, "--sentinel"}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = p.kill() // fails only if the sentinel has ended
		claim.Close()
	})
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	defer c.Close()
	// so that a sentinel soon notices a node that is back
	if err := c.Do(s.t.Context(), "SENTINEL", "DEBUG", "info-period", 500, "publish-period", 250).Err(); err != nil {
		s.t.Fatal(err)
	}
	return &Server{Addr: addr, t: s.t, process: p}
}

// AwaitSentinels waits until each sentinel knows the others and both replicas, and finds the primary in order.
func (s *Sentinels) AwaitSentinels() {
	s.t.Helper()
	for _, sentinel := range s.All {
		s.Await(sentinel.Addr, "sentinel", func(info string) bool {
			want := "status=ok,address=" + s.Gates[s.Primary()].Addr + ",slaves=2,sentinels=3"
			return strings.Contains(info, want)
		})
	}
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinels) Addrs() (all []string) {
	for _, sentinel := range s.All {
		all = append(all, sentinel.Addr)
	}
	return all
}

// Primary returns the number of the node that the first sentinel names as the primary.
func (s *Sentinels) Primary() int {
	s.t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: s.All[0].Addr})
	defer c.Close()
	at, err := c.GetMasterAddrByName(s.t.Context(), Master).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	addr := net.JoinHostPort(at[0], at[1])
	return slices.IndexFunc(s.Gates, func(g *Gate) bool { return g.Addr == addr })
}

// AwaitReplicas waits until both replicas of a node are online.
func (s *Sentinels) AwaitReplicas(node int) {
	s.t.Helper()
	s.Await(s.Nodes[node].Addr, "replication", func(info string) bool { return strings.Count(info, "state=online") == 2 })
}

// Await waits for a state of a section of INFO.
func (s *Sentinels) Await(addr, section string, ok func(info string) bool) {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	defer c.Close()
	var info string
	expect.Eventually(s.t, "a state of "+addr, func() bool {
		var err error
		info, err = c.Info(s.t.Context(), section).Result()
		return err == nil && ok(info)
	}, func() any { return info })
}
