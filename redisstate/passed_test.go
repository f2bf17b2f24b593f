package redisstate_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// backlog writes n open tasks with a value of not_on directly to Redis, because Open would take longer.
func backlog(t testing.TB, s *redisstate.Store, notOn string, n int) {
	t.Helper()
	now := expect.Result(s.Now(t.Context())).Value(t)
	const script = `for id = tonumber(ARGV[1]), tonumber(ARGV[2]) do
		redis.call('HSET', KEYS[1] .. id, 'state', 'open', 'round', '0', 'program', 'p', 'not_on', ARGV[3], 'source', 'rsync:/p/run.sh')
		redis.call('ZADD', KEYS[2], string.format('%.6f', ARGV[4] - 1000 + id / 1000000), id)
	end`
	for from := 1; from <= n; from += 1000 {
		err := s.Conn.Redis.Eval(t.Context(), script, []string{s.Keys.TaskPrefix(), s.Keys.List(task.Open)},
			from, min(from+999, n), notOn, now.String()).Err()
		if err != nil {
			expect.MustEqual[any](t, err, redis.Nil)
		}
	}
	s.Conn.Redis.Set(t.Context(), s.Keys.TaskID(), n, 0)
}

// commandCalls returns the number of times that Redis has run a command.
func commandCalls(t testing.TB, s *redisstate.Store, command string) int {
	t.Helper()
	info := expect.Result(s.Conn.Redis.Info(context.Background(), "commandstats").Result()).Value(t)
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	calls, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(calls)
	return n
}

// putOff puts tasks off for a worker.
func putOff(t *testing.T, s *redisstate.Store, worker string, ids ...int64) {
	t.Helper()
	line := task.NotOn{Worker: worker, Until: clockOf(t, s).Add(600)}.String()
	for _, id := range ids {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "not_on", line).Err())
	}
}

// Many tasks (300,000 with TDF_SOAK=1) are put off for ten workers. The workers find a task behind these tasks. The test logs how long that takes, and which claims block Redis for more than 1 ms.
func TestSoakBacklogThatIsPutOff(t *testing.T) {
	tasks := 5_000
	if os.Getenv("TDF_SOAK") != "" {
		tasks = 300_000
	}
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	var lines []string
	for w := range 10 {
		lines = append(lines, task.NotOn{Worker: fmt.Sprint("w", w), Until: clockOf(t, s).Add(3600)}.String())
	}
	backlog(t, s, strings.Join(lines, "\n"), tasks)
	mustOpen(t, s, define("well"))
	s.Conn.Redis.ConfigSet(t.Context(), "slowlog-log-slower-than", "1000")
	s.Conn.Redis.Do(t.Context(), "SLOWLOG", "RESET")
	start, found := time.Now(), make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	for w := range 10 {
		all.Go(func() {
			for t.Context().Err() == nil {
				c, err := s.Claim(t.Context(), redisstate.ClaimParams{Worker: fmt.Sprint("w", w), Most: 4, Lease: 60})
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
	t.Logf("all ten workers have passed %d tasks after %v", tasks, time.Since(start))
	for _, slow := range s.Conn.Redis.SlowLogGet(t.Context(), 5).Val() {
		t.Logf("slow: %v %v", slow.Duration, slow.Args[:2])
	}
}

// What another program writes in the place of how far a worker has come hides no task. Neither does what is there for too
// long, because the clock was set back.
func TestForeignPassedMembersHideNoTask(t *testing.T) {
	s := newStore(t)
	putOff(t, s, "w", mustOpen(t, s, define("x"))...)
	key := s.Keys.Key("passed:w:default")

	late := limits.Member(-5, 9999999998, 1)
	for i, text := range []string{"", "x", "1 ", "nan " + late, late} {
		for _, left := range []time.Duration{0, time.Hour} {
			must(t, s.Conn.Redis.Set(t.Context(), key, text, left).Err())
			well := fmt.Sprint("well", i, left)
			mustOpen(t, s, define(well))
			c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
			expect.Equal(t, inputs(c.Claims), well, text)
		}
	}
	must(t, s.Conn.Redis.Del(t.Context(), key).Err())
	must(t, s.Conn.Redis.HSet(t.Context(), key, "not", "a string").Err())
	id := mustOpen(t, s, define("last"))
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
	expect.Equal(t, claimedIDs(c), id)
}
