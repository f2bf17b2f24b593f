package redisstate

import (
	"context"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// WakeWorker returns a Waker for the open tasks that the offer allows a worker to claim (see [ClaimParams]). free
// returns what the worker has free, so that it takes no token of a task that does not fit. It may be nil.
func (s *Store) WakeWorker(offer *class.Offer, free func() class.Capacities) *conn.Waker {
	lists := wakeLists{store: s, offer: (&ClaimParams{Offer: offer}).offer(), free: free}
	return s.Conn.Waker(lists.get, lists.took) // also during pauses
}

// WakeServer returns a Waker for executed tasks.
func (s *Store) WakeServer() *conn.Waker { return s.Conn.Waker(only(s.Keys.WakeServer()), nil) }

// WakeManager returns a Waker for finished tasks. It gets tokens only after a call of [Store.ManagerHeartbeat].
func (s *Store) WakeManager() *conn.Waker {
	return s.Conn.Waker(only(s.Keys.WakeManager(s.Conn.Boot())), nil)
}

func only(key string) func() []string { return func() []string { return []string{key} } }

// wakeLists are the wake lists for which an idle worker waits: those of the requirements that it serves, and the one
// for new requirements, which it may serve, too. Its claim then finds out.
type wakeLists struct {
	store *Store
	offer *class.Offer
	free  func() class.Capacities // nil if the worker offers no resources

	mu    sync.Mutex
	lists []waitList
	next  time.Time // when to read the requirements again
	soon  time.Time // when to read them again if there are new ones

	rested time.Time // when the worker may take the next token of a new requirement
}

// A waitList is the key of the wake list of a requirement, and what its tasks ask for.
type waitList struct {
	key     string
	request class.Request
}

const (
	// mostWakeLists bounds the cost of waiting for tokens. If more requirements suit a worker, it notices tasks of the
	// others when it next claims.
	mostWakeLists = 128

	// The lists are kept for wakeListsKept for each 1,000 requirements of the namespace. So their number does not change
	// what an idle worker costs.
	wakeListsKept         = time.Second
	requirementsPerSecond = 1000

	// tokenPause is how long a worker pauses between two tokens of new requirements.
	tokenPause = 100 * time.Millisecond
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
	return append(keys, l.store.Keys.WakeRequirements())
}

// took makes the worker wait for the tokens of a new requirement, too: it reads the requirements again, or soon if
// there are many. It pauses if this happens often, so that a client that opens tasks of ever new requirements does not
// keep all idle workers busy.
func (l *wakeLists) took(key string) {
	if key != l.store.Keys.WakeRequirements() {
		return
	}
	l.mu.Lock()
	pause := time.Until(l.rested)
	l.next, l.rested = l.soon, time.Now().Add(max(pause, 0)+tokenPause)
	l.mu.Unlock()
	time.Sleep(pause)
}

// all returns the wake lists. Without an answer of Redis, they are those of the last answer.
func (l *wakeLists) all() []waitList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.next) {
		return l.lists
	}
	var lists []waitList
	if class.Serves(l.offer, class.Requirement{Queue: class.DefaultQueue}) {
		lists = append(lists, waitList{key: l.store.Keys.WakeOpen()})
	}
	ctx, cancel := context.WithTimeout(context.Background(), wakeListsKept)
	defer cancel()
	known, err := l.store.Counters.Requirements(ctx, 0)
	all := *l.offer
	all.Group = "" // a requirement has the tasks of all groups
	for i := range known {
		x := &known[i]
		if x.Known && len(lists) < mostWakeLists && x.Name != class.Plain && class.Serves(&all, x.Requirement) {
			lists = append(lists, waitList{l.store.Keys.WakeFor(x.Name), x.Resources})
		}
	}
	if err != nil && len(l.lists) > len(lists) {
		lists = l.lists
	}
	pages := time.Duration(len(known) / requirementsPerSecond)
	l.lists, l.soon = lists, time.Now().Add(pages*wakeListsKept/10)
	l.next = time.Now().Add((1 + pages) * wakeListsKept)
	return lists
}
