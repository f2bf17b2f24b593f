package redistest

import (
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Replicates is the option of a primary whose replicas need not wait to get a copy.
var Replicates = Args("--repl-diskless-sync-delay", "0")

// Follow makes the server a replica of another one, and waits until it has a copy. Nil ends that.
func (s *Server) Follow(primary *Server) {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2})
	defer c.Close()
	host, port := "NO", "ONE"
	if primary != nil {
		host, port, _ = net.SplitHostPort(primary.Addr)
	}
	if err := c.ReplicaOf(s.t.Context(), host, port).Err(); err != nil {
		s.t.Fatal(err)
	}
	if primary == nil {
		return
	}
	_, own, _ := net.SplitHostPort(s.Addr)
	at := redis.NewClient(&redis.Options{Addr: primary.Addr, Protocol: 2})
	defer at.Close()
	for !strings.Contains(at.Info(s.t.Context(), "replication").Val(), "port="+own+",state=online") {
		if s.t.Context().Err() != nil {
			s.t.Fatal("the replica does not follow")
		}
	}
}
