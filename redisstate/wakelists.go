package redisstate

import (
	"context"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// WakeWorker returns a Waker for the open tasks that the offer allows a worker to claim (see [ClaimParams]). free
// returns what the worker has free, so that it takes no token of a task that does not fit. It may be nil.
func (s *Store) WakeWorker(offer *class.Offer, free func() class.Capacities) *conn.Waker {
	lists := wakeLists{store: s, offer: (&ClaimParams{Offer: offer}).offer(), free: free}
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
	offer *class.Offer
	free  func() class.Capacities // nil if the worker offers no resources

	mu    sync.Mutex
	lists []partitionList
	next  time.Time // when to read the partitions again
}

// A partitionList is the key of the wake list of a partition, and what the tasks of its partition ask for.
type partitionList struct {
	key     string
	request class.Request
}

const (
	// mostWakeLists bounds the cost of waiting for tokens. If more partitions suit a worker, it notices tasks of the
	// others when it next claims.
	mostWakeLists = 128

	// wakeListsKept is the time for which the lists are kept for each 1,000 partitions of the namespace. So the number
	// of partitions does not change what an idle worker costs.
	wakeListsKept = time.Second
)

// get returns the keys of the wake lists of tasks that fit in what is free.
func (l *wakeLists) get() (keys []string) {
	var free class.Capacities
	if l.free != nil {
		free = l.free()
	}
	for _, list := range l.all() {
		if free == nil || free.Fit(list.request) {
			keys = append(keys, list.key)
		}
	}
	return keys
}

// all returns the wake lists. Without an answer of Redis, they are those of the last answer.
func (l *wakeLists) all() []partitionList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.next) {
		return l.lists
	}
	var lists []partitionList
	if class.Serves(l.offer, class.Requirement{Queue: class.DefaultQueue}) {
		lists = append(lists, partitionList{key: l.store.Keys.WakeOpen()})
	}
	read, pages := 0, time.Duration(1)
	if l.store.pauses.get().version != "" {
		ctx, cancel := context.WithTimeout(context.Background(), wakeListsKept)
		defer cancel()
		err := l.store.EachPartition(ctx, func(name string, p class.Requirement) bool {
			read++
			if name != class.Plain && class.Serves(l.offer, p) {
				lists = append(lists, partitionList{l.store.Keys.WakePartition(name), p.Resources})
			}
			return len(lists) < mostWakeLists
		})
		if err != nil && len(l.lists) > len(lists) {
			lists = l.lists
		}
		pages += time.Duration(read / index.PartitionsPerPage)
	}
	l.lists, l.next = lists, time.Now().Add(pages*wakeListsKept)
	return lists
}
