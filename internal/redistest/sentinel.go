package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Master is the name of the primary at the sentinels of [StartSentinel].
const Master = "tdf"

// Sentinels are three sentinels with a primary and two replicas.
type Sentinels struct {
	All   []*Server // the sentinels; they cannot restart
	Nodes []*Server // the first is the primary at the start

	t testing.TB
}

// StartSentinel starts a primary, two replicas and three sentinels. If the primary does not answer for half a second,
// the sentinels promote a replica. All of them end with the test.
func StartSentinel(t testing.TB, opts ...Option) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	opts = append(slices.Clone(opts), Args("--repl-diskless-sync-delay", "0"))
	for range 3 {
		if len(s.Nodes) == 1 {
			host, port, _ := net.SplitHostPort(s.Nodes[0].Addr)
			opts = append(opts, Args("--replicaof", host, port))
		}
		s.Nodes = append(s.Nodes, Start(t, opts...))
	}
	// a sentinel learns of replicas at once only if they are online when it starts
	awaitReply(t, s.Nodes[0].Addr, "state=online", 2, "INFO", "replication")
	for range 3 {
		s.All = append(s.All, s.start())
	}
	for _, sentinel := range s.All {
		awaitReply(t, sentinel.Addr, "slaves=2,sentinels=3", 1, "INFO", "sentinel")
	}
	return s
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
	_, primary, _ := net.SplitHostPort(s.Nodes[0].Addr)
	text := fmt.Sprintf("bind %s\nport %s\nsentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %[3]s 500\n"+
		"sentinel failover-timeout %[3]s 2000\nsentinel parallel-syncs %[3]s 2\n", host, port, Master, host, primary)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	p, err := launch(dir, []string{file, "--sentinel"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = p.kill() // fails only if the sentinel has ended
		claim.Close()
	})
	return &Server{Addr: addr, t: s.t, process: p}
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinels) Addrs() (all []string) {
	for _, sentinel := range s.All {
		all = append(all, sentinel.Addr)
	}
	return all
}

// Primary returns the primary that the sentinels name.
func (s *Sentinels) Primary() *Server {
	s.t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: s.All[0].Addr})
	defer c.Close()
	at, err := c.GetMasterAddrByName(s.t.Context(), Master).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	addr := net.JoinHostPort(at[0], at[1])
	return s.Nodes[slices.IndexFunc(s.Nodes, func(n *Server) bool { return n.Addr == addr })]
}

// Settle makes the sentinels promote no replica any more.
func (s *Sentinels) Settle() {
	s.t.Helper()
	for _, sentinel := range s.All {
		c := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr})
		err := c.Set(s.t.Context(), Master, "down-after-milliseconds", "3600000").Err()
		c.Close()
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// awaitReply waits until the reply to a command contains a text n times.
func awaitReply(t testing.TB, addr, text string, n int, command ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	defer c.Close()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		if reply, err := c.Do(t.Context(), command...).Text(); err == nil && strings.Count(reply, text) == n {
			return
		}
		<-poll.C
	}
}
