package redistest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

// world holds a key in Redis, a client that connects through a proxy, and a client that connects directly.
type world struct {
	*Proxy
	through, direct *redis.Client
	key             string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	p := NewProxy(t, Shared(t))
	return &world{p, connect(t, p.Addr), connect(t, Shared(t)), Namespace(t)}
}

// value returns the number in the key. It uses the direct client.
func (w *world) value(t *testing.T) int {
	t.Helper()
	n, err := w.direct.Get(t.Context(), w.key).Int()
	if err != nil {
		expect.FailsWith(t, err, redis.Nil)
	}
	return n
}

func (w *world) count(t *testing.T) error {
	return w.through.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{w.key}).Err()
}

func TestProxyDrops(t *testing.T) {
	for name, c := range map[string]struct {
		drop func(p *Proxy, n int, match func([]string) bool)
		runs int // how often Redis runs a command of which something is dropped
	}{
		"DropReplies":     {(*Proxy).DropReplies, 1},
		"TruncateReplies": {(*Proxy).TruncateReplies, 1},
		"DropCommands":    {(*Proxy).DropCommands, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.drop(w.Proxy, 2, Scripts)
			must(t, w.through.Incr(t.Context(), w.key).Err(), "a command that does not match")
			for i := range 2 {
				expect.Fails(t, w.count(t), "EOF", "the reply was not dropped")
				eventually(t, "the drop is counted", func() bool { return w.Dropped() == i+1 })
				expect.Equal(t, w.value(t), 1+(i+1)*c.runs)
			}
			must(t, w.count(t), "after the last drop")
		})
	}
}

func TestProxyHolds(t *testing.T) {
	for name, hold := range map[string]func(*Proxy){
		"Hang":  (*Proxy).Hang,
		"Delay": func(p *Proxy) { p.Delay(math.MaxInt64 / 2) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hold(w.Proxy)
			result := make(chan error)
			go func() { result <- w.count(t) }()
			eventually(t, "a held command", func() bool { return w.Held() == 1 })
			expect.Equal(t, w.value(t), 0, "the value … before Resume")
			w.Resume()
			err := <-result
			expect.NoError(t, err)
			expect.Equal(t, w.value(t), 1)
		})
	}
}

func TestProxyLimits(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("x", 1<<20)
	must(t, w.direct.Set(t.Context(), w.key, text, 0).Err())
	w.Limit(1)
	var wait time.Duration
	for range 7200 { // two hours of bytes
		_, wait, _ = w.reserve(toClient, 1)
	}
	expect.Compare(t, wait, ">", time.Hour)
	got := make(chan error, 1)
	go func() {
		client := Client(t, redis.Options{Addr: w.Addr, MaxRetries: -1})
		defer client.Close()
		value, err := client.Get(t.Context(), w.key).Result()
		if err == nil && value != text {
			err = errors.New("the reply has another text")
		}
		got <- err
	}()
	w.Resume()
	must(t, <-got)
}
