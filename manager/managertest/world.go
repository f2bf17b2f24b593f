package managertest

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// The beginning and the end of the test's time. The first renewal of each run lasts until this end, so that the clock
// need not stop for renewals. Only workers that never report have shorter leases.
var (
	begin = task.At(time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC))
	end   = begin.Add(1e10)
)

// instant is the smallest step of the clock, in seconds. If two times differ by less than aboutInstant, they are equal
// or one step apart.
const (
	instant      = task.Seconds(1e-6)
	aboutInstant = 1.5 * instant
)

// A world is the part of a test that replaces production: Redis, its clock, the server and the workers.
type world struct {
	t        T
	ctx      context.Context // ends when the test ends
	redis    *embedded.Redis
	store    *redisstate.Store // the connection that the server, the workers and the test use
	server   *server.Server
	programs sync.Map // functions func(Run) Result by program name

	mu      sync.Mutex // locked while time passes; protects the fields below
	now     task.Time
	runs    []*run
	start   task.Time // when the next open task may start
	workers int       // the number of workers that have claimed tasks
	seen    task.Time // when the server has done its last round
	called  bool      // whether a manager or the test may have changed tasks since then
	changed task.Time // when the last event happened
	inVain  int       // how often the clock has jumped to a check of the server since the last event
}

// newWorld starts a world, which ends when the test ends.
func newWorld(t T, namespace string) *world {
	t.Helper()
	w := &world{t: t, changed: begin}
	redis, err := embedded.Start("127.0.0.1:0", embedded.Scripts("managertest", lua.Sums()...))
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
	store, silent := steady{server.StoreOf(w.store)}, slog.New(slog.DiscardHandler)
	w.server = server.NewOn("server", config.Server{}, store, silent, clock)
	w.check(w.step()) // sends a heartbeat of the server, so that managers see it
	return w
}

// A steady store never reports a restart of Redis. Without it, the server would take each new connection for a restart,
// because an embedded Redis has no run id.
type steady struct{ server.Store }

// Dials returns 0, as if there were no new connections.
func (steady) Dials() int64 { return 0 }

// check ends the test if the embedded Redis returned an error.
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

// connect returns a new connection. It is closed when the test ends.
func (w *world) connect(namespace string) *redisstate.Store {
	w.t.Helper()
	store, err := redisstate.Connect(w.ctx, w.address(), namespace, slog.New(slog.DiscardHandler))
	w.check(err)
	w.t.Cleanup(func() { _ = store.Close() })
	return store
}

// set moves the clock to the given time, rounded up to a microsecond. Redis stores microseconds. Without rounding up,
// the clock could stop a fraction of a microsecond before the task's start or deadline.
func (w *world) set(now task.Time) {
	at := now.Std()
	if task.At(at) < now {
		at = at.Add(time.Microsecond)
	}
	w.now = task.At(at)
	w.redis.SetTime(at)
}

func (w *world) tasks() []*task.Task {
	var all []*task.Task
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
	slices.SortFunc(all, func(a, b *task.Task) int { return int(a.ID - b.ID) })
	return all
}
