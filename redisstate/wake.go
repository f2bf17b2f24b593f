package redisstate

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Waker waits for work without asking for it: whoever makes work puts a token into a list.
// A token that gets lost costs its reader one of its longest waits, and nothing else; not even that
// where its connection broke: one may have been on its way, so that counts as one.
type Waker struct {
	rdb *redis.Client
	key string

	mu       sync.Mutex
	waiting  bool // somebody is in Wait
	blocking bool // a read is under way
	tokens   chan struct{}
	done     sync.WaitGroup
}

// longestBlock is how long one read stays under way; Redis ends it a little later.
const longestBlock = 2 * time.Second

// WakeWorker waits for open tasks.
func (s *Store) WakeWorker() *Waker { return s.waker(s.keys.wakeOpen()) }

// WakeServer waits for executed tasks.
func (s *Store) WakeServer() *Waker { return s.waker(s.keys.wakeServer()) }

// WakeManager waits for judged tasks; only while [Store.ManagerHeartbeat] says that there is a manager.
func (s *Store) WakeManager() *Waker { return s.waker(s.keys.wakeManager(s.boot)) }

func (s *Store) waker(key string) *Waker {
	options := *s.options
	options.PoolSize = 1
	options.OnConnect = nil
	options.Dialer = idleTimeoutDialer(&options, longestBlock+idleTimeout)
	return &Waker{rdb: redis.NewClient(&options), key: key, tokens: make(chan struct{}, 1)}
}

// Close ends the connection and a Wait that is under way.
func (w *Waker) Close() error {
	err := w.rdb.Close()
	w.done.Wait()
	return err
}

// Wait returns true as soon as there is a token, and false after d or when ctx ends.
func (w *Waker) Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	w.begin()
	defer w.end()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.tokens:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

func (w *Waker) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = true
	if !w.blocking {
		w.blocking = true
		w.done.Go(w.block)
	}
}

func (w *Waker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = false
}

// block reads tokens as long as somebody waits for one. One that comes when nobody does any
// more is another client's: it goes back.
func (w *Waker) block() {
	for {
		err := w.rdb.Do(context.Background(), "BLPOP", w.key, longestBlock.Seconds()).Err()
		_, away := outage(err)
		handed := (err == nil || away) && w.hand()
		if err == nil && !handed {
			w.rdb.LPush(context.Background(), w.key, "1")
		}
		if !w.goOn(err) {
			return
		}
		if err != nil && err != redis.Nil {
			time.Sleep(firstPause) // Redis is away: the caller will see to that
		}
	}
}

func (w *Waker) goOn(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocking = w.waiting && err != redis.ErrClosed
	return w.blocking
}

// hand returns false if nobody waits.
func (w *Waker) hand() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting {
		return false
	}
	select {
	case w.tokens <- struct{}{}:
	default:
	}
	return true
}
