package presence

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// ManagerHeartbeat records that this client is a manager that waits for finished tasks. The client must send the next
// heartbeat within the given time.
func (s *Presence) ManagerHeartbeat(ctx context.Context, now task.Time, within task.Seconds) error {
	return s.Conn.BestEffort(ctx, "send the heartbeat of a manager", func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.Conn.Keys.Managers(), redis.Z{Score: float64(now.Add(within)), Member: s.Conn.Boot()})
		p.ZRemRangeByScore(ctx, s.Conn.Keys.Managers(), "-inf", "("+now.String())
	})
}

// ManagerLeft records that this client no longer waits for finished tasks.
func (s *Presence) ManagerLeft(ctx context.Context) error {
	return s.Conn.Pipeline(conn.Unacknowledged(ctx), "sign off", func(p redis.Pipeliner) {
		p.ZRem(ctx, s.Conn.Keys.Managers(), s.Conn.Boot())
		p.Del(ctx, s.Conn.Keys.WakeManager(s.Conn.Boot()))
	})
}

// waitingManagers caches the boot ids of the managers to wake.
type waitingManagers struct {
	mu    sync.Mutex
	boots []string
	read  time.Time
}

const (
	mostManagers   = 16  // the largest number of managers that one call wakes
	managersRead   = 256 // the number of managers among which a call chooses: those with the latest heartbeats
	managersCached = 100 * time.Millisecond
)

// ManagerUnknown is how long after its first heartbeat other clients may not know of a manager, and so may not wake it.
const ManagerUnknown = 2 * managersCached

// ManagersToWake returns the boot ids of the managers to wake when a task has finished. It ignores errors: without a
// wake token, a manager only waits a little longer.
func (s *Presence) ManagersToWake(ctx context.Context) []string {
	w := &s.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.read) < managersCached {
		return w.boots
	}
	boots, err := s.waitingNow(ctx)
	w.read = time.Now() // also after an error, so that the next calls do not read again at once
	if err != nil {
		return w.boots
	}
	w.boots = boots
	return boots
}

// waitingNow reads which managers to wake. It prefers managers that have taken all their wake tokens, and then managers
// with later heartbeats. A crashed manager takes no tokens. So after its first token, it comes after the live managers.
func (s *Presence) waitingNow(ctx context.Context) ([]string, error) {
	boots, err := s.Conn.Redis.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.Conn.Keys.Managers(), Start: 0, Stop: managersRead - 1,
		Rev: true,
	}).Result()
	if err != nil || len(boots) <= mostManagers {
		return boots, err
	}
	tokens := make([]*redis.IntCmd, len(boots))
	_, err = s.Conn.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, boot := range boots {
			tokens[i] = p.LLen(ctx, s.Conn.Keys.WakeManager(boot))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	left := map[string]int64{}
	for i, boot := range boots {
		left[boot] = min(tokens[i].Val(), 1)
	}
	slices.SortStableFunc(boots, func(a, b string) int { return cmp.Compare(left[a], left[b]) })
	return boots[:mostManagers], nil
}
