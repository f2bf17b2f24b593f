package conn

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/lua"
)

// SkippedIDs is the least number of ids that a namespace skips when Redis may have forgotten ids that it gave out. See
// fence.lua.
const SkippedIDs = 1_000_000

// fence skips ids if Redis may have forgotten some: if the history of its data is another than at the last connection
// of any client. Then Redis has restarted, or a replica was promoted, and the data may lack the last writes. Every
// connection calls fence before its first command, so no client opens tasks with the ids that are missing.
//
// The history has a name in Redis, the replication id, which changes at each start and at each promotion. The run id
// would not do: a primary that is demoted and promoted again keeps it.
//
// A connection to a replica fails, because the replica may be promoted while the connection is open. Other errors fail
// the connection only if they are outages: a client without the rights for fence may have other rights.
func (s *Conn) fence(ctx context.Context, c *redis.Conn) error {
	info, err := infoOf(ctx, c, "replication")
	if err != nil {
		return onlyOutage(err)
	}
	if info["role"] == "slave" {
		return errReplica
	}
	id := info["master_replid"]
	if id == "" || id == s.history.Load() || info.inCluster() != (s.cluster != nil) { // checkServer refuses it
		return nil
	}
	script := lua.Fence.Of(info.major() >= 7, s.cluster != nil)
	skipped, err := script.Run(ctx, c, s.fenceKeys(), id, SkippedIDs, "", "").Int()
	if err != nil {
		return onlyOutage(err)
	}
	s.history.Store(id)
	s.logSkipped(skipped)
	return nil
}

func (s *Conn) logSkipped(ids int) {
	if ids > 0 {
		s.Log.Warn("redis may have lost its latest writes; the ids that they may have used are skipped",
			"redis", s.at(), "skipped", ids)
	}
}

// errReplica is what a replica answers to a write.
const errReplica = closedWith("READONLY this redis is a replica")

// IDs remembers the highest id that Redis has given to this client. Later ids are higher, even if Redis forgets this
// one, as after FLUSHALL.
type IDs struct{ last atomic.Int64 }

// Got records an id.
func (s *IDs) Got(id int64) {
	for last := s.last.Load(); id > last && !s.last.CompareAndSwap(last, id); last = s.last.Load() {
	}
}

// Highest returns the highest id, or 0.
func (s *IDs) Highest() int64 { return s.last.Load() }

// forgot reports whether a script has opened no tasks, because Redis has forgotten ids that it gave out.
func forgot(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "TDFFORGOT") }

// skipForgotten skips the ids that Redis has forgotten, and writes the layout version if it is lost, too.
func (s *Conn) skipForgotten(ctx context.Context) error {
	skipped, err := s.runFence(ctx, s.IDs.Highest()).Int()
	if err == nil {
		s.logSkipped(skipped)
	}
	return err
}

// beginNamespace writes the layout version into a new namespace, together with the replication id.
func (s *Conn) beginNamespace(ctx context.Context) error {
	return s.runFence(ctx, "").Err()
}

func (s *Conn) runFence(ctx context.Context, forgotten any) *redis.Cmd {
	id, _ := s.history.Load().(string)
	return s.Script(lua.Fence).Run(ctx, s.Redis, s.fenceKeys(), id, SkippedIDs, Schema, forgotten)
}

func (s *Conn) fenceKeys() []string {
	return s.ScriptKeys([]string{s.Keys.Schema(), s.Keys.ReplicationID(), s.Keys.TaskID()})
}

// onlyOutage returns err if it is an error of the connection, or an answer that counts as an outage.
func onlyOutage(err error) error {
	var reply redis.Error
	if _, passes := outage(err); !passes && errors.As(err, &reply) {
		return nil
	}
	return err
}
