package brokertest

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/lua"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A simulation has a server and workers whose time the test moves, second by second (docs/lifecycle.md, "Held
// programs").
type simulation struct {
	*testing.T
	store   *redisstate.Store
	redis   *embedded.Redis
	server  *server.Server
	now     time.Time
	workers map[string]*broker.Direct
}

func newSimulation(t *testing.T, workers ...string) *simulation {
	redis := expect.Result(embedded.Start("127.0.0.1:0", embedded.Scripts("test", lua.Sums()...))).Value(t)
	t.Cleanup(redis.Close)
	s := &simulation{T: t, redis: redis, now: time.Unix(1_900_000_000, 0), workers: map[string]*broker.Direct{}}
	redis.SetTime(s.now)
	host, digits, _ := net.SplitHostPort(redis.Addr())
	address := config.Redis{Host: host, Port: expect.Result(strconv.Atoi(digits)).Value(t)}
	log := slog.New(slog.DiscardHandler)
	s.store = expect.Result(redisstate.Connect(t.Context(), address, "sim", log)).Value(t)
	t.Cleanup(func() { s.store.Close() })
	s.server = server.New("s", config.Server{}, s.store, log, server.WithClock(func() time.Time { return s.now }))
	for _, name := range workers {
		s.join(name, class.DefaultQueue)
	}
	return s
}

// join lets a worker begin to serve a queue.
func (s *simulation) join(name, queue string) {
	s.Helper()
	offer := class.Offer{Queues: []class.QueueShare{{Queue: queue}}, Programs: true}
	w := presence.WorkerInfo{Name: name, Boot: "b", Lease: 36000, State: presence.WorkerWorking, Slots: 8, Offer: offer}
	_, _, err := s.store.Presence.TakeName(s.Context(), w, presence.PriorOwner{})
	expect.NoError(s, err)
	s.workers[name] = broker.NewDirect(broker.WholeOf(s.store), name, offer, 36000)
}

func (s *simulation) open(n int, program string, priority int) []int64 {
	s.Helper()
	all := make([]task.Properties, n)
	for i := range all {
		all[i] = task.Defaults(program, "rsync:/"+program+"/run.sh", fmt.Sprint(i))
		all[i].Priority = priority
	}
	return expect.Result(s.store.Open(s.Context(), "test", all...)).Value(s)
}

// second lets a second pass. Then the server makes its rounds.
func (s *simulation) second() {
	s.Helper()
	s.now = s.now.Add(time.Second)
	s.redis.SetTime(s.now)
	for again := true; again; again = s.server.IsBehind() {
		expect.Result(s.server.RunOnce(s.Context())).OK(s)
	}
}

// run lets a worker claim up to n tasks, and report each of them as the function says.
func (s *simulation) run(worker string, n int, how func(t *task.Task) broker.Ending) (ran int) {
	s.Helper()
	w := s.workers[worker]
	for calls := 0; ran < n; calls++ {
		expect.MustTrue(s, calls < 1000, "claims without an end")
		c := expect.Result(w.Exchange(s.Context(), s.Context(), &redisstate.ClaimParams{Most: n - ran})).Value(s)
		reports := make([]*broker.Delivery, len(c.Claims))
		for i, claim := range c.Claims {
			e := how(claim.Task)
			e.Claim = claim.ID
			reports[i] = &broker.Delivery{Task: claim.Task, Ending: e}
		}
		expect.Result(w.Exchange(s.Context(), s.Context(), nil, reports...)).OK(s)
		if ran += len(c.Claims); len(c.Claims) == 0 && !c.More {
			break
		}
	}
	return ran
}

func unfit(*task.Task) broker.Ending {
	return broker.Ending{Way: broker.Unfit, Reason: "no interpreter"}
}

func unstarted(*task.Task) broker.Ending {
	return broker.Ending{Unstarted: true, Result: rules.Result{Refused: true, Reason: "fetch: not found"}}
}

func sound(*task.Task) broker.Ending { return broker.Ending{Result: rules.Result{Exit: "0"}} }

func (s *simulation) in(state task.State) int64 {
	s.Helper()
	return expect.Result(s.store.Counts(s.Context())).Value(s)[state]
}

func (s *simulation) isHeld() bool {
	s.Helper()
	return len(expect.Result(s.store.Limits.HeldSources(s.Context())).Value(s)) > 0
}

// A broken worker costs tasks nothing while a sound one runs them.
func TestABrokenWorkerBesideASoundOne(t *testing.T) {
	s := newSimulation(t, "broken", "sound")
	const n, each = 2000, 20
	ids := s.open(n, "p", 0)
	for range n/each + 1 {
		s.run("broken", 4, unfit)
		expect.True(t, !s.isHeld(), "one worker held the program")
		s.run("sound", each, sound)
		s.second()
	}
	expect.Equal(t, s.in(task.Succeeded), int64(n))
	for _, stored := range expect.Result(s.store.Read(t.Context(), ids[:1000], redisstate.Want{Fields: redisstate.Facts})).Value(t) {
		expect.Equal(t, stored.Task.Fails+stored.Task.UnfitHosts, 0)
	}
}

// A sole worker that is repaired after five minutes goes on by itself, and has failed no task.
func TestASoleWorkerThatIsRepaired(t *testing.T) {
	s := newSimulation(t, "w")
	const n = 40
	s.open(n, "p", 0)
	tries := 0
	for range 300 {
		tries += s.run("w", 4, unfit)
		s.second()
	}
	expect.True(t, s.isHeld(), "after", tries, "rounds")
	expect.Compare(t, tries, "<=", 20)
	for range 61 {
		s.run("w", n, sound)
		s.second()
	}
	s.run("w", n, sound)
	s.second()
	expect.Equal(t, s.in(task.Succeeded), int64(n))
	expect.True(t, !s.isHeld())
}

// Many tasks of a program that nobody can start delay others by seconds, and few of them fail.
func TestTasksOfADeadSource(t *testing.T) {
	s := newSimulation(t, "a", "b")
	const n, others = 10_000, 100
	for range n / 1000 {
		s.open(1000, "dead", 2147483647)
	}
	s.open(others, "sound", 0)
	how := func(t *task.Task) broker.Ending {
		if t.Program == "dead" {
			return unstarted(t)
		}
		return sound(t)
	}
	for range 10 {
		s.run("a", 8, how)
		s.run("b", 8, how)
		s.second()
	}
	expect.Equal(t, s.in(task.Succeeded), int64(others))
	expect.Compare(t, s.in(task.Failed), "<=", int64(30))
}

// A hold ends after ten minutes without a failure, also if no task of the program is left. Nothing of it remains.
func TestAHoldWithoutTrialsEnds(t *testing.T) {
	for _, n := range []int{2, 20} {
		s := newSimulation(t, "a", "b")
		s.open(n, "p", 0)
		s.second()
		s.run("a", 1, unstarted)
		s.run("b", 1, unstarted)
		s.run("a", 1, unstarted) // meets the hold
		expect.True(t, s.isHeld(), n)
		s.second()
		s.second()
		s.now = s.now.Add(10 * time.Minute)
		s.second()
		expect.True(t, !s.isHeld(), n)
		s.run("a", n, sound)
		s.second()
		expect.Equal(t, s.in(task.Succeeded)+s.in(task.Failed), int64(n))
		for _, key := range []string{"held", "paused"} {
			exists := expect.Result(s.store.Conn.Redis.Exists(t.Context(), s.store.Keys.Key(key)).Result()).Value(t)
			expect.Equal(t, exists, int64(0), key, n)
		}
	}
}

// A task that no live worker may claim keeps other tasks from trying the program for seconds.
func TestTrialsOnOtherWorkers(t *testing.T) {
	s := newSimulation(t, "a", "b", "c")
	s.join("gone", "gpu")
	gpu := task.Defaults("p", "rsync:/p/run.sh", "gpu")
	gpu.Priority, gpu.Queue = 5, "gpu"
	unserved := expect.Result(s.store.Open(t.Context(), "test", gpu)).Value(t)[0]
	s.open(20, "p", 0)
	s.second()
	s.run("a", 1, unfit)
	s.run("b", 1, unfit)
	for _, name := range []string{"gone", "c"} {
		expect.Equal(t, s.run(name, 1, unfit), 0, name, "meets the hold")
	}
	stored := expect.Result(s.store.ReadOne(t.Context(), unserved, redisstate.Want{Fields: redisstate.Facts})).Value(t)
	expect.NotEqual(t, stored.Task.HeldFor(), "")
	key := s.store.Keys.Worker("gone")
	expect.NoError(t, s.store.Conn.Redis.HSet(t.Context(), key, "state", presence.WorkerGone).Err())
	trials := 0
	for range 20 {
		s.second()
		for _, name := range []string{"a", "b", "c"} {
			trials += s.run(name, 1, unfit)
		}
	}
	expect.Compare(t, trials, ">=", 2)
}

// Workers of the original TDF would not find held tasks, so beside them no program is held.
func TestNoProgramIsHeldBesideTheOriginal(t *testing.T) {
	for _, original := range []string{"no", "yes"} {
		s := newSimulation(t, "a", "b")
		expect.NoError(t, s.store.ChangeSetting(t.Context(), task.SettingOriginalWorkers, original))
		s.open(10, "p", 0)
		s.run("a", 4, unfit)
		s.run("b", 4, unfit)
		expect.Equal(t, s.isHeld(), original == "no", original)
	}
}
