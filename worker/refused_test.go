package worker

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A guarded world has a Redis of its own, so that tests can change the rights of Redis users.
type guarded struct {
	*world
	operator *redis.Client
}

func newGuarded(t *testing.T) *guarded {
	w := newWorld(t)
	s := redistest.Start(t, redistest.Args("--user", "operator", "on", "nopass", "~*", "&*", "+@all"))
	w.store = w.connect(s.Addr)
	g := &guarded{w, redistest.Client(t, redis.Options{Addr: s.Addr, Username: "operator", Password: "any"})}
	return g
}

func (g *guarded) do(commands ...string) {
	g.Helper()
	for _, c := range commands {
		var args []any
		for word := range strings.FieldsSeq(c) {
			args = append(args, word)
		}
		must(g, g.operator.Do(g.Context(), args...).Err(), c)
	}
}

var errorCount = regexp.MustCompile(`(?:errorstat_\w+:count=|total_connections_received:)(\d+)`)

// refusals returns how many error replies Redis has sent, and how many connections it has accepted: clients close a connection to a replica
// before they send a call.
func (g *guarded) refusals() int {
	g.Helper()
	info := expect.Result(g.operator.Info(g.Context(), "errorstats", "stats").Result()).Value(g)
	sum := 0
	for _, m := range errorCount.FindAllStringSubmatch(info, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// The worker loses its access to Redis while it holds a result, and gets the access back long after the lease has run
// out. The result still arrives (docs/guarantees.md, "Every call may be sent twice").
func TestAResultOutlivesARefusingRedis(t *testing.T) {
	const drop = "CLIENT KILL TYPE normal SKIPME yes"
	for name, c := range map[string]struct {
		refuse, admit []string
		why           string
	}{
		"a password":      {[]string{"CONFIG SET requirepass secret", drop}, []string{"ACL SETUSER default on nopass"}, "it requires a password"},
		"no rights":       {[]string{"ACL SETUSER default -@scripting"}, []string{"ACL SETUSER default +@all"}, "the user lacks a right that TDF needs"},
		"no writes":       {[]string{"ACL SETUSER default -hset"}, []string{"ACL SETUSER default +@all"}, "the user lacks a right that TDF needs"},
		"no keys":         {[]string{"ACL SETUSER default resetkeys"}, []string{"ACL SETUSER default allkeys"}, "the user lacks a right that TDF needs"},
		"user turned off": {[]string{"ACL SETUSER default off", drop}, []string{"ACL SETUSER default on"}, "it requires a password"},
		"a replica":       {[]string{"REPLICAOF 127.0.0.1 1"}, []string{"REPLICAOF NO ONE"}, "it is a read-only replica"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			id := g.open("")
			running, end := make(chan struct{}), make(chan struct{})
			worker := g.running(func(_ context.Context, r *Round) (Ended, error) {
				close(running)
				<-end
				fmt.Fprint(r.Stdout, "result")
				return Ended{}, nil
			})
			wait := g.background(t.Context(), worker)
			<-running
			g.loseLease(g.operator, id)
			g.do(c.refuse...)
			g.timers.beat(t, "the reason in the log", func() bool { return strings.Contains(g.log.String(), c.why) })
			close(end)
			before := g.refusals()
			eventually(t, "several tries", func() bool { return g.refusals() > before+12 })
			g.do(c.admit...)
			wait()
			got := g.task(id)
			expect.Equal(t, got.State, tdf.Succeeded)
			expect.Equal(t, got.LastOutput(), "result")
		})
	}
}

// If the password is wrong at the start, Connect returns an error at once, and does not wait.
func TestWrongPasswordEndsTheStart(t *testing.T) {
	g := newGuarded(t)
	g.do("CONFIG SET requirepass secret")
	host, port, _ := strings.Cut(g.operator.Options().Addr, ":")
	n, _ := strconv.Atoi(port)
	_, err := redisstate.Connect(t.Context(), config.Redis{Host: host, Port: n, Password: "wrong"}, "N", g.logger())
	expect.Fails(t, err, "the password (or the username) is wrong")
}

// Redis refuses a result because it is too large. The round of that result fails, and its error says why. The other
// result is stored.
func TestAResultThatRedisCannotStore(t *testing.T) {
	g := newGuarded(t)
	g.cfg.Concurrency, g.cfg.MaxOutput = 2, 0
	g.do("CONFIG SET proto-max-bulk-len 1048576")
	large, small := g.open("3000000"), g.open("3")
	var both sync.WaitGroup
	both.Add(2)
	worker := g.running(func(_ context.Context, r *Round) (Ended, error) {
		both.Done()
		both.Wait()
		n, _ := strconv.Atoi(r.Args[0])
		fmt.Fprint(r.Stdout, strings.Repeat("x", n))
		return Ended{}, nil
	})
	stop := g.start(worker)
	expect.Equal(t, g.executed(small).LastOutput(), "xxx", "the task with the small result")
	got := g.executed(large)
	stop()
	r := got.Current()
	has(t, r.Error, "the round's result is lost: redis cannot store this: a value is larger than Redis allows (proto-max-bulk-len)")
	expect.Equal(t, r.Exit, "")
	expect.Equal(t, r.OutputBytes, 3000000)
	g.logged("executed, but its result is refused")
}

// If the report of a running round is too large for Redis, the leases of all rounds are renewed without the report.
func TestAReportThatRedisCannotStore(t *testing.T) {
	g := newGuarded(t)
	g.cfg.Concurrency, g.cfg.MaxCheckpoint = 2, 4<<20
	g.do("CONFIG SET proto-max-bulk-len 1048576")
	ids := []int64{g.open("a"), g.open("b")}
	end := make(chan struct{})
	worker := g.running(func(ctx context.Context, r *Round) (Ended, error) {
		if r.Args[0] == "a" {
			must(t, os.WriteFile(dirOf(r)+"/checkpoint", make([]byte, 3<<20), 0o644))
		}
		wait(ctx, end)
		return Ended{}, ctx.Err()
	})
	stop := g.start(worker)
	g.timers.beat(t, "the log", func() bool { return strings.Contains(g.log.String(), "a report of the running round is left out") })
	for _, id := range ids {
		before := g.task(id).LeaseUntil
		g.timers.beat(t, "a renewal", func() bool { return g.task(id).LeaseUntil > before })
	}
	close(end)
	for _, id := range ids {
		g.executed(id)
	}
	stop()
}

// The index of a task's group was replaced by a key of another type. The round of this task and the rounds of other
// tasks still end.
func TestAGroupOfAnotherTypeHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 2
	odd := w.open("odd", func(d *task.Properties) { d.Group = "g" })
	other := w.open("other")
	end := make(chan struct{})
	worker := w.running(func(ctx context.Context, r *Round) (Ended, error) {
		wait(ctx, end)
		return Ended{}, ctx.Err()
	})
	stop := w.start(worker)
	for _, id := range []int64{odd, other} {
		eventually(t, "it runs", func() bool { return w.task(id).State == tdf.Running })
	}
	key := w.store.Keys.Group("g")
	must(t, w.client().Del(t.Context(), key).Err())
	must(t, w.client().Set(t.Context(), key, "a text", 0).Err())
	close(end)
	w.executed(other)
	w.executed(odd)
	stop()
}
