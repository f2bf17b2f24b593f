package conn

import (
	"log/slog"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestOwnerInAReply(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"MOVED 12 10.0.0.1:7": "10.0.0.1:7", "MOVED 12 ::2:7": "[::2]:7", "MOVED 12 r.example:7": "r.example:7",
		"MOVED 12 :7": "[::1]:7", "MOVED 12": "", "ASK 12 10.0.0.1:7": "", "ERR MOVED": "",
	} {
		expect.Equal(t, ownerIn(reply, "[::1]:6379"), want, reply)
	}
}

// A node that is cut off from its cluster answers, but can no longer be used. The client asks the other nodes, and uses
// its connections to this node no more.
func TestANodeWithoutItsCluster(t *testing.T) {
	t.Parallel()
	const lost = "127.0.0.1:1"
	node := redistest.Shared(t) // it answers as an owner does
	s, err := New(config.Redis{Cluster: []string{lost, node}}, redistest.Namespace(t), slog.New(slog.DiscardHandler))
	expect.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	s.cluster.moved(lost)
	expect.True(t, !s.cluster.redirected(t.Context(), replied("CLUSTERDOWN The cluster is down")))
	expect.Equal(t, s.primary.Load(), any(node))
}
