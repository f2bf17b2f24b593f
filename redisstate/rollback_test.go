package redisstate_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// After Redis has come back with older data, ids that it gave out name no other task, and reports and archives from
// before are refused. All clients together skip ids once.
func TestRollback(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	ns := redistest.Namespace(t)
	s, other := connect(t, r.Addr, ns), connect(t, r.Addr, ns)
	mustOpen(t, s, define("kept"))
	must(t, s.Conn.Redis.Save(t.Context()).Err())
	lost := mustOpen(t, s, define("lost"))[0]
	before := mustClaim(t, s, 2)[0]
	mustExecute(t, s, before, rules.Result{Output: "before"})
	mustSettle(t, s, 1)
	old := read(t, s, 1)

	r.Restart()
	first := mustOpen(t, other, define("a"))[0]
	expect.Compare(t, first, ">", conn.SkippedIDs)
	expect.Equal(t, mustOpen(t, s, define("b"))[0], first+1)
	_, err := s.ReadOne(t.Context(), lost, redisstate.Want{Fields: redisstate.Whole})
	expect.Fails(t, err, "")
	m := expect.Result(rules.Archive(old)).Value(t)
	expect.Fails(t, expect.Result(s.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)[0].Err, "")
	for _, c := range mustClaim(t, s, 3) {
		if c.Task.ID == 1 {
			m = expect.Result(rules.Execute(c.Task, before.ID, rules.Result{Output: "before"})).Value(t)
			expect.Fails(t, expect.Result(s.Execute(t.Context(), "w", m)).Value(t)[0].Err, "")
		}
	}
	mustBeSound(t, s)

	r.Restart() // to the same data as before, so that the skip is lost, too
	expect.NotEqual(t, mustOpen(t, connect(t, r.Addr, ns), define("c"))[0], first)
	expect.Equal(t, mustOpen(t, connect(t, r.Addr, redistest.Namespace(t)), define("new"))[0], 1)
}

// An address may lead to a replica that is promoted later. No connection that was made before the promotion opens tasks.
func TestPromotedReplica(t *testing.T) {
	t.Parallel()
	primary, replica := redistest.Start(t, redistest.Replicates), redistest.Start(t, redistest.Replicates)
	ns := redistest.Namespace(t)
	s := connect(t, primary.Addr, ns)
	mustOpen(t, s, define("kept"))
	replica.Follow(primary)
	r := redistest.Client(t, redis.Options{Addr: replica.Addr})
	must(t, r.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	mustOpen(t, s, define("lost"))

	var log testlog.Buffer
	var at *redisstate.Store
	connected := make(chan error, 1)
	go func() {
		var err error
		at, err = redisstate.Connect(t.Context(), conntest.Config(t, replica.Addr), ns, slog.New(slog.NewTextHandler(&log, nil)))
		connected <- err
	}()
	expect.Eventually(t, "the client knows the replica", func() bool {
		return len(connected) > 0 || strings.Contains(log.String(), "read-only replica")
	})
	must(t, r.ReplicaOf(t.Context(), "NO", "ONE").Err())
	must(t, <-connected)
	t.Cleanup(func() { at.Close() })
	expect.Compare(t, mustOpen(t, at, define("new"))[0], ">", conn.SkippedIDs)
}

// After FLUSHALL, clients that run never get an id for a second time, and the namespace has its layout version again.
func TestFlushedRedis(t *testing.T) {
	conntest.EachRedis(t, func(t *testing.T, addr string) {
		ns := redistest.Namespace(t)
		s, other, idle := connect(t, addr, ns), connect(t, addr, ns), connect(t, addr, ns)
		mustOpen(t, s, slices.Repeat([]task.Properties{define("lost")}, 3)...)
		last := mustOpen(t, other, define("lost"))[0]
		must(t, deleteNamespace(t, s))
		grouped := define("new")
		grouped.Group = "g" // another path of the script
		for _, call := range []func() int64{
			func() int64 { return mustOpen(t, idle, define("new"))[0] },
			func() int64 { return mustOpen(t, s, define("new"))[0] },
			func() int64 { return mustOpen(t, other, grouped)[0] },
			func() int64 {
				return expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Open: []task.Properties{grouped}})).Value(t)[0].IDs[0]
			},
		} {
			id := call()
			expect.Compare(t, id, ">", last)
			last = id
		}
		expect.Equal(t, expect.Result(s.Conn.SchemaOf(t.Context())).Value(t), "2")
		must(t, deleteNamespace(t, s))
		connect(t, addr, ns) // a new client takes the namespace for a new one
		expect.Compare(t, mustOpen(t, s, define("new"))[0], ">", last)
	})
}

func deleteNamespace(t *testing.T, s *redisstate.Store) error {
	return s.Conn.Redis.Del(t.Context(), expect.Result(s.Conn.Redis.Keys(t.Context(), s.Keys.Namespace()+":*").Result()).Value(t)...).Err()
}

// After files of Redis were put back (docs/operations.md, "Backup and restore"), ids that were given out since the copy
// name no other task.
func TestRestoredFiles(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, redistest.AOF("always"))
	s, backup := connect(t, r.Addr, redistest.Namespace(t)), filepath.Join(t.TempDir(), "backup")
	mustOpen(t, s, define("kept"))
	dir := expect.Result(s.Conn.Redis.ConfigGet(t.Context(), "dir").Result()).Value(t)["dir"]
	must(t, os.CopyFS(backup, os.DirFS(dir)))
	lost := mustOpen(t, s, define("lost"))[0]
	r.Kill()
	must(t, os.RemoveAll(dir))
	must(t, os.CopyFS(dir, os.DirFS(backup)))
	r.Restart()
	expect.Compare(t, mustOpen(t, s, define("new"))[0], ">", conn.SkippedIDs)
	expect.Equal(t, read(t, s, 1).Input, "kept")
	_, err := s.ReadOne(t.Context(), lost, redisstate.Want{Fields: redisstate.Whole})
	expect.Fails(t, err, "")
}

// A client that may not write can still read after a restart, and the next client that may write skips ids.
func TestRollbackWithoutRights(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, redistest.Args("--user", "reader", "on", "nopass", "~*", "&*", "+@all", "-@write", "-set"))
	ns := redistest.Namespace(t)
	s := connect(t, r.Addr, ns)
	mustOpen(t, s, define("kept"))
	must(t, s.Conn.Redis.Save(t.Context()).Err())
	r.Restart()
	at := conntest.Config(t, r.Addr)
	at.Username, at.Password = "reader", "any"
	reader := expect.Result(redisstate.Connect(t.Context(), at, ns, quiet)).Value(t)
	t.Cleanup(func() { reader.Close() })
	expect.Result(reader.Counts(t.Context())).Value(t)
	expect.Compare(t, mustOpen(t, s, define("a"))[0], ">", conn.SkippedIDs)
}

// The keys of a namespace can be copied under another name (docs/operations.md, "Redis Cluster"): no value contains the name.
func TestCopiedNamespace(t *testing.T) {
	s := newStore(t)
	waits := define("waits")
	waits.After = &task.Dependencies{Group: "g"}
	mustOpen(t, s, grouped("g"), keyed("k", task.UntilFinished), waits)
	expect.Result(dependencies.Of(s).LinkWaiting(t.Context())).Is(t, 1)
	claims := mustClaim(t, s, 1)
	other := connect(t, s.Conn.Addr, redistest.Namespace(t))
	for _, key := range s.Conn.Redis.Keys(t.Context(), s.Keys.Key("")+"*").Val() {
		name := other.Keys.Key(strings.TrimPrefix(key, s.Keys.Key("")))
		value := expect.Result(s.Conn.Redis.Dump(t.Context(), key).Result()).Value(t)
		must(t, s.Conn.Redis.RestoreReplace(t.Context(), name, 0, value).Err())
	}
	mustBeSound(t, other)
	mustExecute(t, other, claims[0], rules.Result{Exit: "0"})
	mustSettle(t, other, claims[0].Task.ID)
	expect.Len(t, mustClaim(t, other, 9), 1)
	mustBeSound(t, other)
	expect.Equal(t, read(t, s, claims[0].Task.ID).State, task.Running, "the first namespace has changed")
}
