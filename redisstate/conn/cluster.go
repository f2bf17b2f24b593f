package conn

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
)

// A cluster finds the node of a Redis Cluster that owns the slot of the namespace. All keys of a namespace are in one
// slot, so a client needs connections to this node alone. The nodes themselves know the owner: another node, also a
// replica, answers a command with MOVED and the owner's address.
type cluster struct {
	conn *Conn
	any  dial // connects to any node
	dial dial // connects to the owner

	mu    sync.Mutex
	nodes []string // of the configuration
	next  int      // the index of the node to ask next
	sure  bool     // the address in conn.primary is not in doubt
}

// maxRedirects is the number of redirects that a call follows without a pause.
const maxRedirects = 5

var (
	// errStale is the error of a connection to a node that is no longer the owner.
	errStale = errors.New("the namespace has moved to another node of the cluster")
	// errCircle means that nodes name each other as the owner.
	errCircle = &answerError{reason: "the nodes of its cluster do not agree on who has the namespace"}
)

// clusterClient returns a client that connects to the owner of the namespace's slot.
func (s *Conn) clusterClient(cfg config.Redis) *redis.Client {
	o := s.options
	stale := func(addr string) bool { return s.primary.Load() != addr }
	s.cluster = &cluster{conn: s, any: o.Dialer, dial: dialer(idleTimeoutDialer(o, cfg.TLSCA), stale), nodes: cfg.Cluster}
	o.Dialer = s.cluster.connect
	own := *o
	own.DialTimeout = primaryTimeout // for the questions, too
	return redis.NewClient(&own)
}

func (c *cluster) connect(ctx context.Context, network, _ string) (net.Conn, error) {
	owner, err := c.owner(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx, network, owner)
	if err != nil {
		c.doubt()
	}
	return conn, err
}

// owner returns the address of the owner. It asks the nodes only if the last known address is in doubt. The last known
// owner is one of the nodes that it asks, because the configuration may lack it.
func (c *cluster) owner(ctx context.Context) (owner string, err error) {
	if owner, sure := c.known(); sure {
		return owner, nil
	}
	for range len(c.nodes) + 1 {
		node := c.nextNode()
		if node == "" {
			continue
		}
		if owner, err = c.follow(ctx, node); err == nil {
			c.moved(owner)
			return owner, nil
		}
	}
	return "", err
}

func (c *cluster) known() (owner string, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner, _ = c.conn.primary.Load().(string)
	return owner, c.sure
}

func (c *cluster) nextNode() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	if i := c.next % (len(c.nodes) + 1); i > 0 {
		return c.nodes[i-1]
	}
	owner, _ := c.conn.primary.Load().(string)
	return owner
}

// follow asks a node, and the nodes that it names, for the owner.
func (c *cluster) follow(ctx context.Context, node string) (string, error) {
	for range maxRedirects {
		owner, err := c.ask(ctx, node)
		if err != nil || owner == node {
			return owner, err
		}
		node = owner
	}
	return "", errCircle
}

// ask returns the address of the owner as a node knows it.
func (c *cluster) ask(ctx context.Context, node string) (string, error) {
	o := *c.conn.options
	o.OnConnect, o.PoolSize = nil, 1
	o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) { return c.any(ctx, network, node) }
	client := redis.NewClient(&o)
	defer client.Close()
	err := client.Get(ctx, c.conn.Keys.Schema()).Err()
	var reply redis.Error
	if err == nil || !errors.As(err, &reply) {
		return node, err
	}
	if owner := ownerIn(reply.Error(), node); owner != "" {
		return owner, nil
	}
	// while the slot moves, its owner may lack this key; and the user may lack the right to read it
	if err == redis.Nil || IsWrongType(err) || LacksRights(err) || redis.HasErrorPrefix(err, "ASK ") {
		return node, nil
	}
	return "", err
}

// ownerIn returns the address in the reply MOVED of a node, or "" for another reply. A reply without a host means the
// host that was asked.
func ownerIn(reply, node string) string {
	words := strings.Fields(reply)
	if len(words) != 3 || words[0] != "MOVED" {
		return ""
	}
	colon := strings.LastIndex(words[2], ":")
	host, port := words[2][:max(0, colon)], words[2][colon+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(node)
	}
	return net.JoinHostPort(host, port)
}

// moved records the owner. Connections to other nodes are stale then.
func (c *cluster) moved(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.seePrimary(owner)
	c.sure = true
}

// doubt makes the next connection ask for the owner. Present connections stay usable.
func (c *cluster) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sure = false
}

// redirected reports whether an error that counts as an outage means that another node is the owner. After an error
// that shows that the owner is gone, the next connection asks for the owner. Without a cluster, redirected returns
// false.
func (c *cluster) redirected(ctx context.Context, err error) bool {
	if c == nil {
		return false
	}
	if errors.Is(err, errStale) {
		return true
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		c.doubt()
		return false
	}
	before, _ := c.known()
	if owner := ownerIn(reply.Error(), before); owner != "" {
		c.moved(owner)
		return true
	}
	switch word, _, _ := strings.Cut(reply.Error(), " "); word {
	case "CLUSTERDOWN", "READONLY", "MASTERDOWN", "UNBLOCKED":
		c.doubt()
		_, _ = c.owner(ctx) // the connections to a node that is cut off from the cluster would stay in use
	}
	return false
}
