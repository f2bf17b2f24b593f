package chaos

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// A cluster has three primaries with a replica each. The primary is the owner of the namespace's slot. Each failover
// lasts until the cluster has promoted the replica, and is healed when the old primary is its replica. At other times,
// the cluster promotes none, also on a slow machine.
//
// The processes reach the nodes without proxies: a client learns the address of the owner from the nodes. The nodes
// reach each other through gates.
type cluster struct {
	*redistest.Cluster
	t        testing.TB
	replicas int // [redis] replicas
	old      *redistest.Server
	down     bool
}

// inSlot is a text with the hash tag of the namespace. Keys that begin with it are in the namespace's slot.
const inSlot = "{" + namespace + "}"

func onCluster(replicas int) setting {
	return setting{
		deploy:    func(t testing.TB, fsync string) deployment { return newCluster(t, fsync, replicas) },
		failovers: true,
		mayLose:   func(string) bool { return replicas == 0 },
	}
}

func newCluster(t testing.TB, fsync string, replicas int) *cluster {
	return &cluster{Cluster: redistest.StartGatedCluster(t, redistest.AOF(fsync)), t: t, replicas: replicas}
}

func (c *cluster) join() (section string, proxies []*redistest.Proxy) { return c.direct(), nil }

func (c *cluster) direct() string {
	return fmt.Sprintf("[redis]\ncluster=%s\nreplicas=%d\n", strings.Join(c.Addrs(), ","), c.replicas)
}

func (c *cluster) primaries() []*redis.Client {
	return []*redis.Client{redistest.Client(c.t, redis.Options{Addr: c.Owner(inSlot).Addr, MaxRetries: -1})}
}

func (c *cluster) kill() {
	c.begin()
	c.down = true
	c.old.Kill()
	c.replaced()
}

func (c *cluster) pause() {
	c.begin()
	c.old.Signal(syscall.SIGSTOP)
	c.replaced()
}

func (c *cluster) begin() {
	c.old = c.Owner(inSlot)
	c.Promote()
}

// replaced waits until the replica is the primary.
func (c *cluster) replaced() {
	expect.Eventually(c.t, "another primary", func() bool {
		owner := c.Owner(inSlot, c.old)
		return owner != nil && owner != c.old
	})
}

func (c *cluster) heal() {
	owner := c.Owner(inSlot, c.old)
	if c.down {
		c.old.Restart()
		c.down = false
	} else {
		c.old.Signal(syscall.SIGCONT)
	}
	c.rejoined(owner)
}

// rejoined waits until the old primary is the replica of the owner.
func (c *cluster) rejoined(owner *redistest.Server) {
	c.AwaitOwner(inSlot, owner)
	c.AwaitReplica(owner)
	c.Settle()
}

// part cuts the primary off from the other nodes. The processes still reach all nodes.
func (c *cluster) part(*world) (string, func()) {
	c.begin()
	end := c.Part(c.old)
	c.replaced()
	return "", func() {
		owner := c.Owner(inSlot, c.old)
		end()
		c.rejoined(owner)
	}
}

// replicated writes after it has read, and waits until the replica has this write, and all before.
func (c *cluster) replicated(read func()) {
	read()
	r := c.primaries()[0]
	defer r.Close()
	expect.Eventually(c.t, "the replica has what was read", func() bool {
		p := r.Pipeline()
		p.Incr(c.t.Context(), inSlot+"replicated")
		have := p.Do(c.t.Context(), "WAIT", 1, 1000)
		_, err := p.Exec(c.t.Context())
		n, _ := have.Int() // 0 after an error
		return err == nil && n == 1
	})
}

// faults returns the faults of processes, and those of the owner. The links of processes break only in the other
// deployments.
func (c *cluster) faults() []fault {
	all := slices.DeleteFunc(slices.Clone(ofProcesses), func(f fault) bool {
		return !strings.HasPrefix(f.name, "kill a ") && !strings.HasPrefix(f.name, "stop a ")
	})
	return append(all, []fault{
		{"kill the primary", true, 0, 10, killRedis.begin},
		{"stop the primary", true, 0, 10, stopRedis.begin},
		{"part the primary", true, 0, 10, c.part},
		c.moves(), flushScripts, killClients,
	}...)
}

// moves begins to move the slot to another primary. When the fault heals, the slot moves, or stays.
func (c *cluster) moves() fault {
	return fault{"move the slot", true, 0, 10, func(w *world) (string, func()) {
		to := c.Other(inSlot)
		c.Migrate(inSlot, to)
		if w.random.IntN(4) == 0 {
			return "and back", func() { c.Stay(inSlot, to) }
		}
		return "", func() { w.Logf("%d keys moved", c.Move(inSlot, to)) }
	}}
}

// moving is a cluster whose slot only moves, so that nothing may be lost.
type moving struct{ *cluster }

func (m moving) faults() []fault { return []fault{m.moves()} }
