package conn

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Waker waits for wake tokens in a list of Redis, so that an idle component need not poll. If a token is lost, the
// component waits until the time-out of Wait. If the connection breaks, a token may be lost with it. So a broken
// connection counts as a token.
type Waker struct {
	conn *Conn
	rdb  *redis.Client
	keys func() []string  // the lists; BLPOP takes a token of the first list that has one
	took func(key string) // called with the list of each token before it is handed over; nil does nothing

	mu       sync.Mutex
	waiting  bool // a call of Wait is under way
	blocking bool // a command that waits for a token is under way
	tokens   chan struct{}
	done     sync.WaitGroup
}

// longestBlock is the time for which one BLPOP waits for a token. Redis may answer a little later.
const longestBlock = 2 * time.Second

// Waker returns a Waker for the lists that keys returns. It calls took, if it is not nil, with the list of each token.
func (s *Conn) Waker(keys func() []string, took func(key string)) *Waker {
	options := *s.options
	options.PoolSize = 1
	options.OnConnect = nil
	dial := options.Dialer
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dial(context.WithValue(ctx, idleTimeoutKey{}, longestBlock+idleTimeout), network, addr)
	}
	return &Waker{conn: s, rdb: redis.NewClient(&options), keys: keys, took: took, tokens: make(chan struct{}, 1)}
}

// Close closes the Waker's connection, and waits until its goroutine has ended.
func (w *Waker) Close() error {
	err := w.rdb.Close()
	w.done.Wait()
	return err
}

// Wait waits for a wake token, and returns true when it gets a token. It returns false after the time d, or when ctx
// ends.
func (w *Waker) Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	if !w.ready(ctx, d) {
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

// ready does the checks of [Conn.Ready]. If the checks fail, ready waits for the time d or until ctx ends, and returns
// false.
func (w *Waker) ready(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if w.conn.Ready(ctx) == nil {
		return true
	}
	<-ctx.Done()
	return false
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

// block takes tokens from the list as long as a call of Wait is under way. If a token arrives after Wait has returned,
// block puts the token back into the list, for another client.
func (w *Waker) block() {
	for {
		args := []any{"BLPOP"}
		for _, key := range w.keys() {
			args = append(args, key)
		}
		token, err := w.rdb.Do(context.Background(), append(args, longestBlock.Seconds())...).StringSlice()
		_, away := outage(err)
		w.conn.cluster.redirected(context.Background(), err)
		if err == nil && w.took != nil {
			w.took(token[0])
		}
		handed := (err == nil || away) && w.hand()
		if err == nil && !handed {
			w.rdb.LPush(context.Background(), token[0], "1")
		}
		if !w.goOn(err) {
			return
		}
		if err != nil && err != redis.Nil {
			time.Sleep(firstPause) // Redis is not available; the caller's next command will wait for it
		}
	}
}

func (w *Waker) goOn(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocking = w.waiting && err != redis.ErrClosed
	return w.blocking
}

// hand passes a token to a call of Wait. It returns false if no call of Wait is under way. After it, no call is: a
// component that got a token first uses it, and should take no token from others meanwhile.
func (w *Waker) hand() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting {
		return false
	}
	w.waiting = false
	select {
	case w.tokens <- struct{}{}:
	default:
	}
	return true
}
