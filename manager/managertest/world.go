package managertest

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/server"
)

// The time of tests. Leases of workers that are not lost last until the end of time, so that time need not stop for renewals.
var (
	begin = tdf.At(time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC))
	end   = begin.Add(1e10)
)

// instant is the smallest step of the clock. Times that differ by less than aboutInstant differ by one step at most.
const (
	instant      = tdf.Seconds(1e-6)
	aboutInstant = 1.5 * instant
)

// A world is everything but the managers: Redis, its clock, the server and the workers.
type world struct {
	t        T
	ctx      context.Context // ends with the test
	redis    *embedded.Redis
	store    *redisstate.Store // of the server, the workers and the test
	server   *server.Server
	programs sync.Map // func(Run) Result by name

	mu      sync.Mutex // held while time passes; protects the rest
	now     tdf.Time
	runs    []*run
	start   tdf.Time // when the next open task may start
	seen    tdf.Time // time of the server's last heartbeat
	changed tdf.Time // time of the last event
}

// newWorld starts a world that ends with the test.
func newWorld(t T, namespace string) *world {
	t.Helper()
	w := &world{t: t, changed: begin}
	redis, err := embedded.Start("127.0.0.1:0", embedded.Scripts("managertest", redisstate.Scripts()...))
	w.check(err)
	w.redis = redis
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	t.Cleanup(func() {
		cancel()
		redis.Close()
	})
	w.set(begin)
	w.store = w.connect(namespace)
	clock := server.WithClock(func() time.Time { return w.now.Std() })
	w.server = server.New("server", config.Server{}, steady{w.store}, slog.New(slog.DiscardHandler), clock)
	w.check(w.step()) // so that managers see a server
	return w
}

// steady is the server's store. The server takes a new connection for a restart of an embedded Redis, which has no run id.
type steady struct{ *redisstate.Store }

// Dials returns 0: the Redis of a test does not restart.
func (steady) Dials() int64 { return 0 }

// check ends the test after an error of the embedded Redis.
func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("managertest: %v", err)
	}
}

func (w *world) address() config.Redis {
	host, port, _ := net.SplitHostPort(w.redis.Addr())
	n, _ := strconv.Atoi(port)
	return config.Redis{Host: host, Port: n}
}

// connect returns a new connection, which ends with the test.
func (w *world) connect(namespace string) *redisstate.Store {
	w.t.Helper()
	store, err := redisstate.Connect(w.ctx, w.address(), namespace, slog.New(slog.DiscardHandler))
	w.check(err)
	w.t.Cleanup(func() { _ = store.Close() })
	return store
}

// set moves the clock to a time, rounded up to a microsecond, as Redis stores it. Otherwise a task that is due now could seem
// to be due later.
func (w *world) set(now tdf.Time) {
	at := now.Std()
	if tdf.At(at) < now {
		at = at.Add(time.Microsecond)
	}
	w.now = tdf.At(at)
	w.redis.SetTime(at)
}

func (w *world) tasks() []*tdf.Task {
	var all []*tdf.Task
	const page = 100
	for ids, err := range w.store.IDs(w.ctx, page) {
		w.check(err)
		stored, err := w.store.Read(w.ctx, ids, redisstate.Want{Fields: redisstate.Whole})
		w.check(err)
		for _, x := range stored {
			if x.Task != nil {
				all = append(all, x.Task)
			}
		}
	}
	slices.SortFunc(all, func(a, b *tdf.Task) int { return int(a.ID - b.ID) })
	return all
}
