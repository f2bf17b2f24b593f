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

// knownPartitions are the names of the partitions in use and what is paused, as a claim last read them. A claim sends the
// version. If Redis has another version, the claim gets them again.
type knownPartitions struct {
	mu sync.Mutex
	partitions
}

type partitions struct {
	version string
	names   []string
	paused  tdf.Paused
}

func (p *knownPartitions) get() partitions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.partitions
}

func (p *knownPartitions) set(known partitions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partitions = known
}

// selectPartitions returns the partitions from which the request claims, the groups from which it must not claim, and the
// version of the names that it knows.
func (s *Store) selectPartitions(r *ClaimRequest) (version string, queues []tdf.QueuePartitions, paused []string) {
	known := s.partitions.get()
	queues, paused = known.paused.Withhold(r.selected(known.names))
	return known.version, queues, paused
}

func (r *ClaimRequest) selected(names []string) []tdf.QueuePartitions {
	if r.Select == nil {
		return []tdf.QueuePartitions{{Queue: tdf.DefaultQueue, Partitions: []string{tdf.DefaultPartition}}}
	}
	return r.Select(names)
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

// readPartitions keeps the partitions and the pauses in the answer of claim.lua. It returns false if the answer has none,
// because the client knows them already.
func (s *Store) readPartitions(answer []any) bool {
	if len(answer) != 3 {
		return false
	}
	known := partitions{version: text(answer[0])}
	for _, name := range list(answer[1]) {
		known.names = append(known.names, text(name))
	}
	for _, name := range list(answer[2]) {
		if p, ok := tdf.ParsePausable(text(name)); ok {
			known.paused = append(known.paused, p)
		}
	}
	s.partitions.set(known)
	return true
}

// placeEntries are the entries by which claims find a task in its place. A held task has only the first one, and the entry of
// its limit key if it waits because of a limit.
type placeEntries struct {
	place, level, later, limit, limitLevel *redis.FloatCmd
	partition                              *redis.BoolCmd
}

// isListed reports whether claims find the place itself.
func (e placeEntries) isListed() bool {
	return e.partition.Val() && (e.level.Err() == nil || e.later.Err() == nil)
}

// inPlace reports for each task whether claims find it in its place. It is true for a task without a place.
func (s *Store) inPlace(ctx context.Context, all []tdf.Placement) ([]bool, error) {
	found := map[int]placeEntries{}
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i := range all {
			t := all[i].Task
			if t == nil || t.State != tdf.Open || t.OpenPlace() == "" {
				continue
			}
			partition, priority := t.Partition().String(), strconv.Itoa(t.Priority)
			place := p.ZScore(ctx, s.keys.place(t.OpenPlace()), strconv.FormatInt(t.ID, 10))
			if tdf.IsHeld(t.OpenPlace()) {
				found[i] = placeEntries{place: place}
				if t.WaitsForLimit() {
					part, priority := tdf.LimitPlace(t.LimitKey, 0), strconv.Itoa(t.Priority)
					found[i] = placeEntries{
						place: place, limit: p.ZScore(ctx, s.keys.limitsDue(), t.LimitKey), limitLevel: p.ZScore(ctx, s.keys.levels(part), priority),
					}
				}
				continue
			}
			found[i] = placeEntries{
				place: place, partition: p.HExists(ctx, s.keys.partitions(), partition),
				level: p.ZScore(ctx, s.keys.levels(partition), priority), later: p.ZScore(ctx, s.keys.later(partition), priority),
			}
		}
	})
	in := make([]bool, len(all))
	for i := range in {
		e, has := found[i]
		in[i] = !has || e.place.Err() == nil && (e.partition == nil || e.isListed()) && (e.limit == nil || e.limit.Err() == nil && e.limitLevel.Err() == nil)
	}
	return in, err
}
