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

// commandCalls returns the number of times that Redis has run a command.
func commandCalls(t testing.TB, s *Store, command string) int {
	t.Helper()
	info := expect.Result(s.Redis.Info(context.Background(), "commandstats").Result()).Value(t)
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	calls, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(calls)
	return n
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

// What another program writes in the place of how far a worker has come hides no task, and neither does it after its time.
func TestForeignPassedMembersHideNoTask(t *testing.T) {
	s := newStore(t)
	broken := define("x")
	broken.Program = "broken"
	mustOpen(t, s, broken)
	key := s.Keys.Key("passed:w:default:" + avoidedName([]string{"broken"}))

	late := member(-5, 9999999998, 1)
	for i, text := range []string{"", "x", "1 ", "nan " + late, "1700000000.000000 " + late, "9999999999.000000 " + late, fmt.Sprint(clockOf(t, s), " x")} {
		must(t, s.Redis.Set(t.Context(), key, text, 0).Err())
		mustOpen(t, s, define(fmt.Sprint("well", i)))
		c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: "w", Most: 1, Lease: 60, Avoid: []string{"broken"}})).Value(t)
		expect.Equal(t, inputs(c.Claims), fmt.Sprint("well", i), text)
	}
	must(t, s.Redis.Del(t.Context(), key).Err())
	must(t, s.Redis.HSet(t.Context(), key, "not", "a string").Err())
	id := mustOpen(t, s, define("last"))
	c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: "w", Most: 1, Lease: 60, Avoid: []string{"broken"}})).Value(t)
	expect.Equal(t, claimedIDs(c), id)
}
