package redisstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// knownPartitions are the names of the partitions in use, as a claim last read them. A claim sends the version. If Redis
// has another version, the claim gets the names again.
type knownPartitions struct {
	mu      sync.Mutex
	version string
	names   []string
}

func (p *knownPartitions) get() (version string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version, p.names
}

func (p *knownPartitions) set(version string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version, p.names = version, names
}

// selectPartitions returns the partitions from which the request claims, and the version of the names that it knows.
func (s *Store) selectPartitions(r *ClaimRequest) (version string, queues []tdf.QueuePartitions) {
	version, names := s.partitions.get()
	if r.Select == nil {
		return version, []tdf.QueuePartitions{{Queue: tdf.DefaultQueue, Partitions: []string{tdf.DefaultPartition}}}
	}
	return version, r.Select(names)
}

// positionName returns the name under which Redis keeps how far claims from these partitions have come.
func (k Keys) positionName(partitions []string) string {
	if len(partitions) == 1 && partitions[0] == tdf.DefaultPartition {
		return k.List(tdf.Open)
	}
	sum := sha256.Sum256([]byte(strings.Join(partitions, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// wakeLists returns the wake lists of the workers that claim from the partitions.
func (k Keys) wakeLists(queues []tdf.QueuePartitions) (keys []string) {
	for _, q := range queues {
		for _, partition := range q.Partitions {
			if partition == tdf.DefaultPartition {
				keys = append(keys, k.wakeOpen())
			} else {
				keys = append(keys, k.key("wake:"+partition))
			}
		}
	}
	return keys
}

// readPartitions keeps the version and the names of the partitions in the answer of claim.lua. It returns false if the
// answer has none, because the client knows them already.
func (s *Store) readPartitions(answer []any) bool {
	if len(answer) == 0 {
		return false
	}
	var names []string
	for _, name := range answer[1:] {
		names = append(names, text(name))
	}
	s.partitions.set(text(answer[0]), names)
	return true
}

// inPlace reports for each task whether claims find it in its place. It is true for a task without a place.
func (s *Store) inPlace(ctx context.Context, all []tdf.Placement) ([]bool, error) {
	type entries struct {
		place, level, later *redis.FloatCmd
		partition           *redis.BoolCmd
	}
	found := map[int]entries{}
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i := range all {
			t := all[i].Task
			if t == nil || t.State != tdf.Open || t.Place() == "" {
				continue
			}
			partition, priority := t.Partition().String(), strconv.Itoa(t.Priority)
			found[i] = entries{
				p.ZScore(ctx, s.keys.place(t.Place()), strconv.FormatInt(t.ID, 10)),
				p.ZScore(ctx, s.keys.levels(partition), priority), p.ZScore(ctx, s.keys.later(partition), priority),
				p.HExists(ctx, s.keys.partitions(), partition),
			}
		}
	})
	in := make([]bool, len(all))
	for i := range in {
		e, has := found[i]
		in[i] = !has || e.place.Err() == nil && e.partition.Val() && (e.level.Err() == nil || e.later.Err() == nil)
	}
	return in, err
}
