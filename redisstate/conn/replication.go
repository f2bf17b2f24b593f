package conn

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Replication says which Redis is the primary, and how far its replicas are.
type Replication struct {
	Primary  string // its address
	RunID    string // "" for the embedded Redis
	Replicas []Replica

	Wanted                 int // replicas that must confirm each write
	Sentinels, SentinelsUp int // how many exist, and how many of them work; 0 without sentinels
}

// NoQuorum reports whether too few sentinels work to replace the primary: they need a majority.
func (r Replication) NoQuorum() bool { return r.Sentinels > 0 && 2*r.SentinelsUp <= r.Sentinels }

// A Replica is a replica as the primary sees it.
type Replica struct {
	Addr   string
	State  string       // online, or the state of its synchronization
	Lag    task.Seconds // since its last message
	Behind int64        // bytes of the replication that it has not confirmed
}

// online is the state of a replica that receives all writes.
const online = "online"

// longestLag is the longest lag of a replica that counts as usual. Replicas send a message each second.
const longestLag = 10

// Lags reports whether the replica is not online, or has sent no message for 10 s.
func (r Replica) Lags() bool { return r.State != online || r.Lag > longestLag }

func (r Replica) String() string {
	return fmt.Sprintf("%s (%s, lag %.0f s, %d bytes behind)", r.Addr, r.State, float64(r.Lag), r.Behind)
}

// WithSentinels adds what the sentinels say.
func (s *Conn) WithSentinels(ctx context.Context, r Replication) Replication {
	if s.sentinels != nil {
		r.Sentinels, r.SentinelsUp = s.sentinels(ctx)
	}
	return r
}

// Replication returns what the section replication of INFO says. With sentinels, or in a cluster, the address of the
// primary is the one that they gave last.
func (s *Conn) Replication(info Info) Replication {
	r := Replication{Primary: s.Addr, RunID: info.RunID(), Wanted: s.replicas.Wanted}
	if primary, ok := s.primary.Load().(string); ok {
		r.Primary = primary
	}
	end := info.Number("master_repl_offset")
	for i := range info.Number("connected_slaves") {
		fields := map[string]string{}
		for field := range strings.SplitSeq(info[fmt.Sprintf("slave%d", i)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		lag, _ := strconv.ParseFloat(fields["lag"], 64)
		offset, _ := strconv.ParseInt(fields["offset"], 10, 64)
		r.Replicas = append(r.Replicas, Replica{
			Addr: net.JoinHostPort(fields["ip"], fields["port"]), State: fields["state"], Lag: task.Seconds(lag),
			Behind: max(0, end-offset),
		})
	}
	return r
}

// Online returns the number of replicas that are online.
func (r Replication) Online() (n int) {
	for _, replica := range r.Replicas {
		if replica.State == online {
			n++
		}
	}
	return n
}

// Lag returns the largest lag of the replicas.
func (r Replication) Lag() (most task.Seconds) {
	for _, replica := range r.Replicas {
		most = max(most, replica.Lag)
	}
	return most
}
