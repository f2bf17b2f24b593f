package redisstate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// An Opener opens tasks for a client of the HTTP API, which gets an error instead of waiting for memory.
type Opener struct {
	Owner string // the submitter whose tasks they are, who has a share of Redis's memory; "" for a client without a share
}

type openerKey struct{}

// WithOpener returns a context whose new tasks are those of an opener.
func WithOpener(ctx context.Context, o *Opener) context.Context {
	return context.WithValue(ctx, openerKey{}, o)
}

func openerOf(ctx context.Context) *Opener {
	o, _ := ctx.Value(openerKey{}).(*Opener)
	return o
}

// Bounds of the sample from which the memory of an owner is estimated.
const (
	sampledTasks = 400
	sampleLife   = 5 * time.Second
)

// A sample says about how much memory the tasks of each owner take.
type sample struct {
	read time.Time
	of   map[string]float64 // bytes
}

// CheckShare returns an error if the tasks of an owner take more of Redis's memory than is left below high_water. So a
// submitter has at most half of what others leave, and its tasks count however they were opened: by rounds and
// callbacks, too. Their memory is that of a random sample of all tasks, because no count would stay right while
// outputs come and tasks go. Without an owner, without maxmemory, and below half of high_water, it needs no sample.
func (s *Store) CheckShare(ctx context.Context, owner string) error {
	settings, m, err := s.known(ctx, roomForOpens)
	if err != nil || owner == "" || m.Max == 0 {
		return err
	}
	most := settings.HighWater * float64(m.Max)
	if float64(m.Used) <= most/2 {
		return nil
	}
	of, err := s.sampled(ctx, m.Used)
	if err != nil {
		return err
	}
	own, left := of[owner], most-float64(m.Used)
	if own <= left {
		return nil
	}
	return task.NewError(task.CodeFull, fmt.Sprintf("the tasks of %s take about %.0f MiB of redis's memory, and %.0f MiB "+
		"are left below high_water; a submitter may have half of what others leave: remove finished tasks", owner,
		own/(1<<20), max(0, left)/(1<<20)))
}

// sampled returns about how many bytes the tasks of each owner take.
func (s *Store) sampled(ctx context.Context, used int64) (map[string]float64, error) {
	s.room.mu.Lock()
	last := s.room.sample
	fresh := last.of != nil && s.room.clock().Sub(last.read) < sampleLife
	s.room.mu.Unlock()
	if fresh {
		return last.of, nil
	}
	ids, all, err := s.someTasks(ctx)
	if err != nil {
		return nil, err
	}
	bytes, known, err := s.memory(ctx, ids)
	if err != nil {
		return nil, err
	}
	stored, err := s.Read(ctx, ids, Want{Fields: Head})
	if err != nil {
		return nil, err
	}
	of := map[string]float64{}
	for i, x := range stored {
		n := float64(bytes[i]) * float64(all) // of as many tasks as this one stands for
		if !known {
			n = float64(used)
		}
		if x.Task != nil {
			of[x.Task.Owner] += n / float64(len(ids))
		}
	}
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.sample = sample{s.room.clock(), of}
	return of, nil
}

// someTasks returns the ids of random tasks, and the number of all tasks. A task may occur twice.
func (s *Store) someTasks(ctx context.Context) (ids []int64, all int64, err error) {
	ask := func(p redis.Pipeliner, l task.State) *redis.IntCmd {
		return p.ZCard(ctx, s.Keys.List(l))
	}
	sizes, err := conn.AskEach(ctx, s.Conn, "count tasks", rules.Lists, ask)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range sizes {
		all += n.Val()
	}
	type place struct {
		list task.State
		rank int64
	}
	var places []place
	for range min(sampledTasks, all) {
		rank := rand.Int64N(all)
		for i, n := range sizes {
			if rank < n.Val() {
				places = append(places, place{rules.Lists[i], rank})
				break
			}
			rank -= n.Val()
		}
	}
	members, err := conn.AskEach(ctx, s.Conn, "list tasks", places, func(
		p redis.Pipeliner, x place,
	) *redis.StringSliceCmd {
		return p.ZRange(ctx, s.Keys.List(x.list), x.rank, x.rank)
	})
	for _, m := range members {
		ids = append(ids, conn.IDsOf(m.Val())...)
	}
	return ids, all, err
}
