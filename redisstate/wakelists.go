package redisstate

import (
	"context"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// WakeWorker returns a Waker for the open tasks that the offer allows a worker to claim (see [ClaimParams]).
func (s *Store) WakeWorker(offer *tdf.Offer) *conn.Waker {
	lists := wakeLists{store: s, offer: (&ClaimParams{Offer: offer}).offer()}
	return s.Waker(lists.get) // also during pauses
}

// WakeServer returns a Waker for executed tasks.
func (s *Store) WakeServer() *conn.Waker { return s.Waker(only(s.Keys.WakeServer())) }

// WakeManager returns a Waker for finished tasks. It gets tokens only after a call of [Store.ManagerHeartbeat].
func (s *Store) WakeManager() *conn.Waker { return s.Waker(only(s.Keys.WakeManager(s.Boot()))) }

func only(key string) func() []string { return func() []string { return []string{key} } }

// wakeLists are the wake lists for which an idle worker waits: those of the partitions that it serves.
type wakeLists struct {
	store *Store
	offer *tdf.Offer

	mu   sync.Mutex
	keys []string
	next time.Time // when to read the partitions again
}

const (
	// mostWakeLists bounds the cost of waiting for tokens. If more partitions suit a worker, it notices tasks of the
	// others when it next claims.
	mostWakeLists = 128

	// wakeListsKept is the time for which the lists are kept for each 1,000 partitions of the namespace. So the number
	// of partitions does not change what an idle worker costs.
	wakeListsKept = time.Second
)

// get returns the keys of the wake lists. Without an answer of Redis, they are those of the last answer.
func (l *wakeLists) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.next) {
		return l.keys
	}
	var keys []string
	if l.offer.Matches(tdf.Partition{Queue: tdf.DefaultQueue}) {
		keys = append(keys, l.store.Keys.WakeOpen())
	}
	read, pages := 0, time.Duration(1)
	if l.store.pauses.get().version != "" {
		ctx, cancel := context.WithTimeout(context.Background(), wakeListsKept)
		defer cancel()
		err := l.store.EachPartition(ctx, func(name string, p tdf.Partition) bool {
			read++
			if name != tdf.DefaultPartition && l.offer.Matches(p) {
				keys = append(keys, l.store.Keys.WakePartition(name))
			}
			return len(keys) < mostWakeLists
		})
		if err != nil && len(l.keys) > len(keys) {
			keys = l.keys
		}
		pages += time.Duration(read / index.PartitionsPerPage)
	}
	l.keys, l.next = keys, time.Now().Add(pages*wakeListsKept)
	return keys
}
