package chaos

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// A sentinel is a primary with two replicas and three sentinels. Each fault lasts until the sentinels have promoted a
// replica, and is healed when the old primary is a replica of the new one.
//
// The nodes and the sentinels reach each other through gates. Each process reaches the nodes through proxies of its own,
// and the sentinels through gates of its own, which replace the addresses in their replies.
type sentinel struct {
	*redistest.Sentinels
	t        testing.TB
	replicas int // [redis] replicas
	links    []*links
	old      int // the primary of which the present fault is
	down     bool
}

// The links of one process.
type links struct {
	nodes     []*redistest.Proxy
	sentinels []*redistest.Gate
}

// newSentinel starts the nodes and the sentinels. With guarded, a primary without replicas refuses to write.
func newSentinel(t testing.TB, fsync string, replicas int, guarded bool) *sentinel {
	options := []redistest.Option{redistest.AOF(fsync)}
	if guarded {
		options = append(options, redistest.Args("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"))
	}
	return &sentinel{Sentinels: redistest.StartSentinel(t, options...), t: t, replicas: replicas}
}

func (s *sentinel) join() (section string, proxies []*redistest.Proxy) {
	l := &links{}
	for _, node := range s.Nodes {
		l.nodes = append(l.nodes, redistest.NewProxy(s.t, node.Addr))
	}
	var addrs []string
	for _, node := range s.All {
		g := redistest.NewGate(s.t, node.Addr)
		l.sentinels, addrs = append(l.sentinels, g), append(addrs, g.Addr)
	}
	s.links = append(s.links, l)
	var names []string // all ports have five digits
	for i := range l.nodes {
		names = append(names, port(s.Gates[i].Addr), port(l.nodes[i].Addr), port(s.All[i].Addr), port(l.sentinels[i].Addr))
	}
	renamed := strings.NewReplacer(names...)
	for _, g := range l.sentinels {
		g.Alter(renamed.Replace)
	}
	return s.section(addrs), l.nodes
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func (s *sentinel) direct() string { return s.section(s.Addrs()) }

func (s *sentinel) section(sentinels []string) string {
	return fmt.Sprintf("[redis]\nsentinels=%s@%s\nreplicas=%d\n", redistest.Master, strings.Join(sentinels, ","),
		s.replicas)
}

func (s *sentinel) primaries() []*redis.Client {
	return []*redis.Client{redistest.Client(s.t, redis.Options{Addr: s.Nodes[s.Primary()].Addr, MaxRetries: -1})}
}

func (s *sentinel) kill() {
	s.old, s.down = s.Primary(), true
	s.Nodes[s.old].Kill()
	s.replaced(s.old)
}

func (s *sentinel) pause() {
	s.old = s.Primary()
	s.Nodes[s.old].Signal(syscall.SIGSTOP)
	s.replaced(s.old)
}

// replaced waits until a replica is the primary, and the nodes that can be reached follow it. Until then, a node that
// still follows the old primary may confirm its writes, which the failover undoes.
func (s *sentinel) replaced(unreachable ...int) {
	expect.Eventually(s.t, "another primary", func() bool { return s.Primary() != s.old })
	now := s.Primary()
	for i, node := range s.Nodes {
		if i != now && !slices.Contains(unreachable, i) {
			s.Await(node.Addr, "replication", func(info string) bool {
				return strings.Contains(info, "master_port:"+port(s.Gates[now].Addr)+"\r")
			})
		}
	}
}

func (s *sentinel) heal() {
	if s.down {
		s.Nodes[s.old].Restart()
		s.down = false
	} else {
		s.Nodes[s.old].Signal(syscall.SIGCONT)
	}
	s.rejoined()
}

// rejoined waits until the old primary is a replica, and the next failover can begin.
func (s *sentinel) rejoined() {
	s.AwaitReplicas(s.Primary())
	s.AwaitSentinels()
}

// replicated writes after it has read, and waits until the replicas have this write, and all before. A slow machine may
// have a failover at any time.
func (s *sentinel) replicated(read func()) {
	expect.Eventually(s.t, "the replicas have what was read", func() bool {
		primary := s.Primary()
		read()
		ctx, r := s.t.Context(), s.primaries()[0]
		defer r.Close()
		p := r.Pipeline()
		p.Incr(ctx, "replicated")
		have := p.Do(ctx, "WAIT", 2, 1000)
		_, err := p.Exec(ctx)
		n, _ := have.Int() // 0 after an error
		return err == nil && n == 2 && s.Primary() == primary
	})
}

// faults returns the faults after which a replica is promoted, and others that meet them from time to time.
func (s *sentinel) faults() []fault {
	return append(slices.Clone(ofProcesses[2:3]), []fault{
		{"kill the primary", true, 0, 10, killRedis.begin},
		{"stop the primary", true, 0, 10, stopRedis.begin},
		{"part the primary", true, 0, 10, s.part},
		{partReplica, true, 0, 10, s.partReplica},
	}...)
}

const partReplica = "part the primary and a replica"

// part cuts the primary off from its replicas and the sentinels.
func (s *sentinel) part(w *world) (string, func()) {
	s.old = s.Primary()
	return s.split(w, s.old)
}

// partReplica cuts the primary and a replica off from the other replica and the sentinels.
func (s *sentinel) partReplica(w *world) (string, func()) {
	s.old = s.Primary()
	return s.split(w, s.old, (s.old+1+w.random.IntN(2))%len(s.Nodes))
}

// split cuts off some nodes. Each process is on one of the two sides.
func (s *sentinel) split(w *world, nodes ...int) (string, func()) {
	others := []string{redistest.SentinelHost}
	for i := range s.Nodes {
		if !slices.Contains(nodes, i) {
			others = append(others, redistest.NodeHost(i))
		}
	}
	for _, i := range nodes {
		s.Gates[i].Shut(others...)
	}
	beside := 0
	for _, l := range s.links {
		near := w.random.IntN(2) == 0
		if near {
			beside++
			for _, g := range l.sentinels {
				g.Shut("127.0.0.1")
			}
		}
		for i, p := range l.nodes {
			if near != slices.Contains(nodes, i) {
				p.Hang()
			}
		}
	}
	s.replaced(nodes...)
	return fmt.Sprintf("with %d of %d processes", beside, len(s.links)), func() {
		for _, i := range nodes {
			s.Gates[i].Open()
		}
		for _, l := range s.links {
			for i := range l.nodes {
				l.nodes[i].Resume()
				l.sentinels[i].Open()
			}
		}
		s.rejoined()
	}
}
