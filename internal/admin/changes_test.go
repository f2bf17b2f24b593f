package admin_test

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A pace is one random step in the life of some tasks.
func pace(t testing.TB, m *manager.Manager, s *redisstate.Store, ids []int64) []int64 {
	ctx := t.Context()
	some := func() []manager.Ref {
		var refs []manager.Ref
		for range min(len(ids), 5) {
			refs = append(refs, manager.ByIDs(ids[rand.IntN(len(ids))])...)
		}
		return refs
	}
	switch rand.IntN(6) {
	case 0:
		var all []manager.Definition
		for range 1 + rand.IntN(300) {
			all = append(all, define("p", "rsync:/p/run.sh", ""))
		}
		opened := expect.Result(m.Open(ctx, all...)).Value(t)
		for _, one := range opened {
			ids = append(ids, one.ID)
		}
	case 1:
		expect.Result(m.Cancel(ctx, some()...)).OK(t)
	case 2:
		expect.Result(m.Retry(ctx, manager.Changes{}, some()...)).OK(t)
	case 3:
		expect.Result(m.Archive(ctx, some()...)).OK(t)
	default:
		got := expect.Result(s.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 1 + rand.IntN(50), Lease: 3600})).Value(t)
		for _, c := range got.Claims {
			if rand.IntN(2) > 0 {
				move, err := rules.Execute(c.Task, c.ID, rules.Result{Exit: "0"})
				apply(t, s, move, err)
			}
		}
	}
	return ids
}

// Whatever happens between two looks, the last change of each task names its present state, also for a reader that begins later.
func TestChangesMissNothing(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, s := newManager(t, cfg), connect(t, cfg)
	a := admin.New(m)
	changes := a.Changes(expect.Result(m.Now(t.Context())).Value(t))
	middle := time.Time{}
	known, later := map[int64]task.State{}, map[int64]task.State{}
	look := func(c *admin.Changes, known map[int64]task.State) {
		for more := true; more; {
			found, others, err := c.Next(t.Context())
			expect.NoError(t, err)
			expect.True(t, !c.Lost, "changes are lost")
			for _, x := range found {
				known[x.ID] = x.State
			}
			more = others
		}
	}
	var ids []int64
	for i := range 60 {
		ids = pace(t, m, s, ids)
		if rand.IntN(3) == 0 {
			look(changes, known)
		}
		if i == 30 {
			look(changes, known)
			middle, later = changes.At(), maps.Clone(known)
		}
	}
	expect.Eventually(t, "both readers know all states", func() bool { // scores of the last tasks may be a millisecond ahead
		look(changes, known)
		look(a.Changes(middle), later)
		for one, err := range m.List(t.Context(), manager.Query{}) {
			expect.NoError(t, err)
			if known[one.ID] != one.State || later[one.ID] != one.State {
				return false
			}
		}
		return true
	})
}

// If Redis's clock goes backwards, changes may be missing, and later ones are not.
func TestChangesAfterALeap(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	now := expect.Result(m.Now(t.Context())).Value(t)
	changes := admin.New(m).Changes(now.Add(time.Hour))
	_, _, err := changes.Next(t.Context())
	expect.NoError(t, err)
	expect.True(t, changes.Lost, "a position in the future", err)
	expect.Result(m.Open(t.Context(), define("p", "rsync:/p/run.sh", ""))).OK(t)
	expect.Eventually(t, "the task", func() bool {
		found, _, err := changes.Next(t.Context())
		expect.NoError(t, err)
		expect.True(t, !changes.Lost, "changes are lost again")
		return len(found) == 1 && found[0].ID == 1
	})
}

// Entries of other programs do not stop the reader.
func TestForeignEntries(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, direct := newManager(t, cfg), client(t, cfg)
	changes := admin.New(m).Changes(expect.Result(m.Now(t.Context())).Value(t))
	now := float64(expect.Result(m.Now(t.Context())).Value(t).Unix())
	for _, member := range []string{"", "x", "0", "-1", "1e9", "99999999999999999999", "7"} {
		expect.NoError(t, direct.ZAdd(t.Context(), cfg.Namespace+":failed", redis.Z{Score: now, Member: member}, redis.Z{Score: 1e300, Member: member + "y"}).Err())
	}
	for range 3 {
		found, more, err := changes.Next(t.Context())
		expect.NoError(t, err)
		expect.True(t, !more, "foreign entries", found, err)
		expect.Len(t, found, 0)
	}
}

// An entry that comes into a list a little late, as after a small step of the clock, is not missing.
func TestLateChange(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, direct := newManager(t, cfg), client(t, cfg)
	changes := admin.New(m).Changes(expect.Result(m.Now(t.Context())).Value(t))
	expect.Result(m.Open(t.Context(), define("p", "rsync:/p/run.sh", ""))).OK(t)
	next := func() []admin.Change {
		found, _, err := changes.Next(t.Context())
		expect.NoError(t, err)
		return found
	}
	expect.Eventually(t, "the task", func() bool { return len(next()) == 1 })
	expect.Len(t, next(), 0, "changes are reported once")
	late := float64(changes.At().UnixMicro())/1e6 - 0.4
	expect.NoError(t, direct.ZAdd(t.Context(), cfg.Namespace+":open", redis.Z{Score: late, Member: "1"}).Err())
	expect.Len(t, next(), 1, "late changes")
	expect.Len(t, next(), 0, "late changes are reported once")
}
