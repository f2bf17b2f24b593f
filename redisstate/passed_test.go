package redisstate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// backlog writes n open tasks of a program directly to Redis, because Open would take longer.
func backlog(t testing.TB, s *Store, program string, n int) {
	t.Helper()
	now := expect.Result(s.Now(t.Context())).Value(t)
	const script = `for id = tonumber(ARGV[1]), tonumber(ARGV[2]) do
		redis.call('HSET', KEYS[1] .. id, 'state', 'open', 'round', '0', 'program', ARGV[3], 'source', 'rsync:/p/run.sh')
		redis.call('ZADD', KEYS[2], string.format('%.6f', ARGV[4] - 1000 + id / 1000000), id)
	end`
	for from := 1; from <= n; from += 1000 {
		err := s.Redis.Eval(t.Context(), script, []string{s.Keys.TaskPrefix(), s.Keys.List(tdf.Open)},
			from, min(from+999, n), program, now.String()).Err()
		if err != nil {
			expect.MustEqual[any](t, err, redis.Nil)
		}
	}
	s.Redis.Set(t.Context(), s.Keys.TaskID(), n, 0)
}

// claimUntil lets workers claim in turn until one of them gets a task. It returns the answer to the last claim, and the
// number of claims.
func claimUntil(t testing.TB, s *Store, workers int, avoid ...string) (ClaimResult, int) {
	t.Helper()
	for n := 1; n <= 10_000; n++ {
		c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: fmt.Sprint("w", n%workers), Most: 4, Lease: 60, Avoid: avoid})).Value(t)
		if len(c.Claims) > 0 {
			return c, n
		}
	}
	t.Fatal("no task within 10,000 claims")
	return ClaimResult{}, 0
}

// commandCalls returns the number of times that Redis has run a command.
func commandCalls(t testing.TB, s *Store, command string) int {
	t.Helper()
	info := expect.Result(s.Redis.Info(context.Background(), "commandstats").Result()).Value(t)
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	calls, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(calls)
	return n
}

// Workers that avoid the same program share a position. So if one of these workers has passed a task, the other workers
// do not read the task. A claim reads a limited number of tasks.
func TestWorkersSharePositions(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	const tasks, workers = 30_000, 10
	backlog(t, s, "broken", tasks)
	mustOpen(t, s, define("well"))
	before := commandCalls(t, s, "hmget")
	c, claims := claimUntil(t, s, workers, "broken")
	expect.Equal(t, inputs(c.Claims), "well", "claimed")
	looked := commandCalls(t, s, "hmget") - before
	expect.True(t, looked <= tasks+100, workers, "workers looked at", looked, "tasks to pass", tasks)
	most := looked / claims
	expect.Compare(t, most, "<=", 1100)
	expect.Compare(t, claims, ">=", tasks/1100, "a claim looked at", most, "tasks")
	mustOpen(t, s, define("again"))
	before = commandCalls(t, s, "hmget")
	if c, _ := claimUntil(t, s, workers, "broken"); inputs(c.Claims) != "again" {
		t.Errorf("claimed %q", inputs(c.Claims))
	}
	expect.Compare(t, commandCalls(t, s, "hmget")-before, "<=", 10)
	if c, n := claimUntil(t, s, workers); n != 1 || c.Claims[0].Task.Program != "broken" {
		t.Errorf("a worker that avoids nothing got %v after %d claims", c.Claims, n)
	}
}

// A position does not hide tasks if it is expired or unreadable, or if its task was removed.
func TestInvalidPositionsHideNoTask(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	broken := define("x")
	broken.Program = "broken"
	mustOpen(t, s, broken, broken, define("a"), define("b"), define("c"), define("d"))
	claim := func(want string) {
		t.Helper()
		c := expect.Result(s.Claim(ctx, ClaimParams{Worker: "w", Most: 1, Lease: 60, Avoid: []string{"broken"}})).Value(t)
		expect.Equal(t, inputs(c.Claims), want)
	}
	claim("a")
	positions := s.Redis.Keys(ctx, s.Keys.PassedPrefix()+"*").Val()
	expect.MustLen(t, positions, 1, "positions")
	key := positions[0]
	s.Redis.ZRem(ctx, s.Keys.List(tdf.Open), 2) // this task is the position
	claim("b")
	began, _, _ := strings.Cut(s.Redis.Get(ctx, key).Val(), " ")
	at, _ := strconv.ParseFloat(began, 64)
	s.Redis.Set(ctx, key, fmt.Sprintf("%.6f 9999999999 2", at-61), 0)
	claim("c")
	s.Redis.Del(ctx, key)
	s.Redis.HSet(ctx, key, "not", "a string")
	claim("d")
}

// If many workers avoid different sets of programs, each worker still finds a task behind many tasks that the worker
// avoids.
func TestWorkersThatAvoidDifferentProgramsFindTasks(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	const sets, before = 300, 3000
	backlog(t, s, "broken", before)
	mustOpen(t, s, define("well"))
	missing := make([]int, sets)
	for i := range missing {
		missing[i] = i
	}
	for pass := 0; len(missing) > 0; pass++ {
		if pass > before/16 { // a claim reads at least 16 tasks, however slow the machine is
			t.Fatalf("the workers %v did not find the task behind %d tasks that they avoid", missing, before)
		}
		missing = slices.DeleteFunc(missing, func(i int) bool {
			c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: "w", Most: 1, Lease: 60, Avoid: []string{"broken", fmt.Sprint("p", i)}})).Value(t)
			if len(c.Claims) > 0 {
				mustOpen(t, s, define("well"))
			}
			return len(c.Claims) > 0
		})
	}
}

// If a task must not run on one worker, the position of this worker does not hide the task from other workers.
func TestOwnPositionsDoNotHideTasksFromOthers(t *testing.T) {
	s := newStore(t)
	broken := define("x")
	broken.Program = "broken"
	ids := mustOpen(t, s, broken, define("not on w"), broken, define("last"))
	s.Redis.HSet(t.Context(), s.Keys.Task(ids[1]), "not_on", "w")
	for _, step := range []struct{ worker, want string }{{"w", "last"}, {"v", "not on w"}} {
		c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: step.worker, Most: 1, Lease: 60, Avoid: []string{"broken"}})).Value(t)
		expect.Equal(t, inputs(c.Claims), step.want, step.worker)
	}
}

// Ten workers avoid a program that has many open tasks (300,000 with TDF_SOAK=1). The workers find a task behind these
// tasks. The test logs how long that takes, and which claims block Redis for more than 1 ms.
func TestSoakBacklogOfAnAvoidedProgram(t *testing.T) {
	tasks := 5_000
	if os.Getenv("TDF_SOAK") != "" {
		tasks = 300_000
	}
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	backlog(t, s, "broken", tasks)
	mustOpen(t, s, define("well"))
	s.Redis.ConfigSet(t.Context(), "slowlog-log-slower-than", "1000")
	s.Redis.Do(t.Context(), "SLOWLOG", "RESET")
	start, found := time.Now(), make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	for w := range 10 {
		all.Go(func() {
			for t.Context().Err() == nil {
				c, err := s.Claim(t.Context(), ClaimParams{Worker: fmt.Sprint("w", w), Most: 4, Lease: 60, Avoid: []string{"broken"}})
				if err != nil {
					t.Error(err)
					return
				}
				if len(c.Claims) > 0 {
					once.Do(func() { close(found) })
				}
				if !c.More {
					return
				}
			}
		})
	}
	all.Wait()
	<-found
	t.Logf("all ten workers have passed %d tasks that they avoid after %v", tasks, time.Since(start))
	for _, slow := range s.Redis.SlowLogGet(t.Context(), 5).Val() {
		t.Logf("slow: %v %v", slow.Duration, slow.Args[:2])
	}
}

// When the server has returned a task to a partition, claims from this partition begin at the head of the queue again. If many
// tasks are before the position, claims first continue at the position for a while.
func TestReturnedTasksEndPositions(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		broken := define("x")
		broken.Program = "broken"
		mustOpen(t, s, broken, broken, define("y"))
		claim := func() []int64 {
			c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: "w", Most: 1, Lease: 60, Avoid: []string{"broken"}})).Value(t)
			return claimedIDs(c)
		}
		expect.MustEqual(t, claim(), []int64{3})
		keys := s.Redis.Keys(t.Context(), s.Keys.PassedPrefix()+"*").Val()
		expect.MustLen(t, keys, 1)
		position := strings.Fields(s.Redis.Get(t.Context(), keys[0]).Val())
		early := mustOpen(t, s, define("z"))[0]
		must(t, s.Redis.ZAdd(t.Context(), s.Keys.List(tdf.Open), redis.Z{Score: 1, Member: early}).Err())
		now := clockOf(t, s)
		for _, c := range []struct {
			read, returnedTo string
			found            bool
		}{{"1000000", "default", false}, {"2", "queue=other", false}, {"2", "default", true}} {
			position[0], position[4] = now.Add(-5).String(), c.read
			must(t, s.Redis.Set(t.Context(), keys[0], strings.Join(position, " "), 0).Err())
			must(t, s.Redis.Del(t.Context(), s.Keys.PassedPrefix()+"returned:default").Err())
			must(t, s.Redis.Set(t.Context(), s.Keys.PassedPrefix()+"returned:"+c.returnedTo, now.Add(-1).String(), 0).Err())
			got := claim()
			expect.True(t, (len(got) > 0) == c.found, c, "claimed", got)
		}
	})
}
