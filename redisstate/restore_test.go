package redisstate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// records returns the records of all tasks.
func records(t testing.TB, s *Store) []Record {
	t.Helper()
	last, err := s.LastID(t.Context())
	must(t, err)
	var ids []int64
	for id := int64(1); id <= last; id++ {
		ids = append(ids, id)
	}
	var all []Record
	err = s.Records(t.Context(), ids, func(r Record) error {
		all = append(all, r)
		return nil
	})
	must(t, err)
	return all
}

// derived returns the entries of all lists and indexes, with scores to the microsecond. For a past score in `due`, it
// returns "past".
func derived(t testing.TB, s *Store, now tdf.Time) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys := expect.Result(s.Redis.Keys(context.Background(), s.Keys.Namespace()+":*").Result()).Value(t)
	for _, key := range keys {
		name := strings.TrimPrefix(key, s.Keys.Namespace()+":")
		if name != "due" && !strings.HasPrefix(name, "group:") && !strings.HasPrefix(name, "queue:") && !slices.Contains(tdf.Lists, tdf.State(name)) {
			continue
		}
		for _, z := range s.Redis.ZRangeWithScores(context.Background(), key, 0, -1).Val() {
			score := tdf.Time(z.Score).String()
			if name == "due" && tdf.Time(z.Score) <= now {
				score = "past"
			}
			all[name+" "+z.Member.(string)] = score
		}
	}
	return all
}

// Restored tasks have the same entries in all lists and indexes as the dumped tasks.
func TestRestoreMakesTheSameKeys(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		seed := seeded(t)
		p := &player{t: t, s: s, ledger: newLedger(), rand: rand.New(rand.NewPCG(seed, 0)), alone: true}
		p.limitKey(t.Context())
		for range operations(t, 1_000, 20_000) {
			p.step(t.Context())
		}
		all := withUpdates(p)
		for !hasUpdates(all) { // no claim of the player holds
			p.step(t.Context())
			all = withUpdates(p)
		}
		other := connect(t, s.Addr, redistest.Namespace(t))
		expect.MustEqual(t, expect.Result(other.Restore(t.Context(), all...)).Value(t), len(all), "of … were written")
		now := expect.Result(other.Now(t.Context())).Value(t)
		want, got := derived(t, s, now), derived(t, other, now)
		if !maps.Equal(want, got) {
			for name := range want {
				expect.Equal(t, want[name], got[name], name)
			}
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
		again := records(t, other)
		if !slices.EqualFunc(again, all, func(a, b Record) bool {
			return a.ID == b.ID && maps.Equal(a.Hash, b.Hash) && slices.Equal(a.Updates, b.Updates)
		}) {
			t.Error("the tasks differ from those that were restored")
		}
		mustBeSound(t, other)
	})
}

// withUpdates reports updates for the claims of a player, and returns the records of all tasks.
func withUpdates(p *player) []Record {
	p.t.Helper()
	expect.Result(p.s.Renew(p.t.Context(), 3600, renewalsWithUpdates(p.claims)...)).OK(p.t)
	return records(p.t, p.s)
}

func hasUpdates(all []Record) bool {
	return slices.ContainsFunc(all, func(r Record) bool { return len(r.Updates) == 2 })
}

// renewalsWithUpdates returns renewals of claims. Each renewal reports two updates.
func renewalsWithUpdates(claims []Claim) []LeaseRenewal {
	var renewals []LeaseRenewal
	for _, c := range claims {
		renewals = append(renewals, LeaseRenewal{
			ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID, Until: tdf.Never,
			Report: LiveReport{FirstUpdate: 1, Updates: []string{"one", "two \xff"}},
		})
	}
	return renewals
}

// A dump has no links. A task that still waits is linked again. But a task that has waited in its present round keeps the number
// of its links, since without it, the time of the wait would count as a delay if Redis's clock is behind.
func TestRestoreOfTasksThatHaveWaited(t *testing.T) {
	s := newStore(t)
	for id, place := range map[int64]string{7: "", 8: tdf.WaitingPlace} {
		now := expect.Result(s.Now(t.Context())).Value(t)
		h := tdf.Hash{
			"state": "open", "round": "1", "program": "p", "source": "rsync:/p", "input": "x", "max_fails": "3", "after": "3", "links": "1",
			"1:open": now.Add(3600).String(), "1:linked": "1", "ready": now.Add(7200).String(),
		}
		if place != "" {
			h["place"] = place
		}
		expect.MustEqual(t, expect.Result(s.Restore(t.Context(), Record{ID: id, Hash: h})).Value(t), 1)
		read := expect.Result(s.ReadOne(t.Context(), id, Want{Fields: Rules})).Value(t)
		want := place == ""
		expect.Equal(t, read.Task.Current().Linked == 1, want, "task", id)
		expect.NotEqual(t, read.Task.Waits(), want, "task", id)
		if place != "" {
			continue
		}
		released := s.Redis.HGet(t.Context(), s.Keys.Task(id), "1:released").Val()
		expect.Equal(t, released, "1", "the end of task", id, "would release links of others")
		m, ok := read.Task.Rescore(now.Add(7200), now, 0)
		expect.True(t, ok, "with a clock that is behind, the task waits again", m)
		expect.True(t, slices.Contains(m.Clear, "ready"), "with a clock that is behind, the task waits again", m)
	}
}

// If Restore is repeated, existing tasks stay unchanged, even if they have moved since they were restored. The counter
// of ids is never lowered.
func TestRestoreAgainChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		d := define("x")
		d.Group = "g"
		mustOpen(t, s, d, d, d)
		other := connect(t, s.Addr, redistest.Namespace(t))
		all := records(t, s)
		expect.MustEqual(t, expect.Result(other.Restore(t.Context(), all[1:]...)).Value(t), 2)
		mustClaim(t, other, 1)
		mustOpen(t, other, d) // task 4
		before := dump(t, other)
		expect.Result(other.Restore(t.Context(), all[1:]...)).Is(t, 0)
		expect.Equal(t, changed(t, before, dump(t, other)), "")
		expect.Result(other.Restore(t.Context(), all...)).Is(t, 1)
		expect.Result(other.LastID(t.Context())).Is(t, 4, "the last id")
		mustBeSound(t, other)
	})
}

// If another task already has the id of a restored task, Restore fails and writes nothing.
func TestRestoreOfATakenID(t *testing.T) {
	s := newStore(t)
	grouped := define("x")
	grouped.Group = "g"
	mustOpen(t, s, define("x"), grouped, define("x"))
	all := records(t, s)
	for _, c := range []struct {
		what string
		id   int
		make func(other *Store)
	}{
		{"opened", 1, func(other *Store) { mustOpen(t, other, define("x"), define("x")) }},
		{"of another group", 2, func(other *Store) {
			mustRestore(t, other, Record{ID: 2, Hash: tdf.Hash{"0:open": all[1].Hash["0:open"], "group": "h"}})
		}},
		{"opened by hand", 3, func(other *Store) {
			mustRestore(t, other, Record{ID: 3, Hash: tdf.Hash{"state": "open", "program": "p"}})
		}},
		{"no task", 2, func(other *Store) {
			must(t, other.Redis.Set(t.Context(), other.Keys.Task(2), "x", 0).Err())
		}},
	} {
		other := connect(t, s.Addr, redistest.Namespace(t))
		c.make(other)
		before := dump(t, other)
		want := fmt.Sprintf("restore task %d: another task has this id", c.id)
		n, err := other.Restore(t.Context(), all...)
		expect.Equal(t, n, 0, c.what)
		expect.FailsWith(t, err, ErrIDTaken, c.what, n)
		expect.Equal(t, err.Error(), want, c.what, n)
		expect.Equal(t, changed(t, before, dump(t, other)), "", c.what)
	}
}

func mustRestore(t testing.TB, s *Store, records ...Record) {
	t.Helper()
	expect.MustEqual(t, expect.Result(s.Restore(t.Context(), records...)).Value(t), len(records), "of … were written")
}

// Restore makes small calls, so that each call blocks Redis only for some milliseconds.
func TestRestoreInSmallCalls(t *testing.T) {
	t.Parallel()
	var all []Record
	for id := int64(1); id <= 7; id++ {
		all = append(all, Record{ID: id, Hash: tdf.Hash{"0:output": strings.Repeat("x", 900<<10)}})
	}
	all = append(all, Record{ID: 8, Hash: tdf.Hash{"0:output": strings.Repeat("x", 5<<20)}}, Record{ID: 9, Hash: tdf.Hash{"state": "open"}})
	var calls []int
	for rest := all; len(rest) > 0; rest = rest[restoreBatch(rest):] {
		calls = append(calls, restoreBatch(rest))
	}
	want := []int{2, 2, 2, 1, 1, 1}
	expect.True(t, slices.Equal(calls, want), "the calls have", calls, "tasks, want", want)
}

// Restore writes a task in an unknown state unchanged. Check then finds the task.
func TestRestoreOfAnUnknownState(t *testing.T) {
	s := newStore(t)
	expect.Result(s.Restore(t.Context(), Record{ID: 7, Hash: tdf.Hash{"state": "dreaming", "program": "p"}})).OK(t)
	findings := expect.Result(s.Check(t.Context())).Value(t)
	expect.MustLen(t, findings, 1)
	expect.Equal(t, findings[0].ID, 7)
}

// Restore can restore a hash with more properties than a script can pass to one command.
func TestRestoreOfManyRounds(t *testing.T) {
	s := newStore(t)
	h := tdf.Hash{"state": "archived", "outcome": "succeeded", "round": "9999", "releases": "9999"}
	for i := range 10_000 {
		h[tdf.RoundField(i, "open")] = "1700000000"
	}
	expect.MustEqual(t, expect.Result(s.Restore(t.Context(), Record{ID: 1, Hash: h})).Value(t), 1)
	got := records(t, s)
	expect.MustLen(t, got, 1, "the task in Redis differs from the record")
	expect.Equal(t, got[0].Hash, h, "the task in Redis differs from the record")
	mustBeSound(t, s)
}

func TestInvalidRecords(t *testing.T) {
	good := Record{ID: 1, Hash: tdf.Hash{"state": "open"}}
	expect.NoError(t, good.Validate())
	for problem, bad := range map[string]Record{
		"id is not from 1":         {ID: 0, Hash: good.Hash},
		"to 1099511627775":         {ID: 1 << 40, Hash: good.Hash},
		"no properties":            {ID: 2},
		"update 0--1":              {ID: 2, Hash: good.Hash, Updates: []Update{{Number: -1}}},
		"update 0-0":               {ID: 2, Hash: good.Hash, Updates: []Update{{}}},
		"cannot follow update 1-2": {ID: 2, Hash: good.Hash, Updates: []Update{{Round: 1, Number: 2}, {Round: 1, Number: 2}}},
		"update 0-9 cannot follow": {ID: 2, Hash: good.Hash, Updates: []Update{{Round: 1, Number: 2}, {Number: 9}}},
	} {
		expect.Fails(t, bad.Validate(), problem)
	}
}

func TestRestoreIntoAFullRedis(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, "ns")
	must(t, s.Redis.ConfigSet(t.Context(), "maxmemory", "3mb").Err())
	h := tdf.Hash{"state": "open", "0:output": strings.Repeat("x", 1<<20)}
	var err error
	for id := int64(1); id < 10 && err == nil; id++ {
		_, err = s.Restore(t.Context(), Record{ID: id, Hash: h})
	}
	expect.FailsWith(t, err, conn.ErrFull)
	must(t, s.Redis.ConfigSet(t.Context(), "maxmemory", "1mb").Err()) // a record may not fit where a short field does
	expect.Result(s.RestoreFields(t.Context(), "settings", tdf.Hash{tdf.SettingMaxTasks: "5"})).FailsWith(t, conn.ErrFull)
}

// Records reads every task, whether its size is small or large.
func TestRecordsOfAllSizes(t *testing.T) {
	s := newStore(t)
	var all []Record
	for id := int64(1); id <= 300; id++ {
		h := tdf.Hash{"state": "archived", "n": strconv.FormatInt(id, 10)}
		if id%40 > 30 {
			h["0:output"] = strings.Repeat("x", 600<<10)
		}
		all = append(all, Record{ID: 2 * id, Hash: h}) // every second id is missing
	}
	expect.MustEqual(t, expect.Result(s.Restore(t.Context(), all...)).Value(t), len(all))
	expect.Equal(t, records(t, s), all)
}

// A meter is a connection that records the largest number of bytes that arrive between two commands.
type meter struct {
	net.Conn
	since int
	most  *atomic.Int64 // shared by all connections
}

func (m *meter) Write(p []byte) (int, error) {
	m.since = 0
	return m.Conn.Write(p)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.since += n
	m.most.Store(max(m.most.Load(), int64(m.since)))
	return n, err
}

// useMeters replaces the connections of a Store by meters. It returns the maximum that the meters record.
func useMeters(t testing.TB, s *Store) (most *atomic.Int64) {
	most = &atomic.Int64{}
	options := *s.Redis.Options()
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &meter{Conn: c, most: most}, err
	}
	must(t, s.Redis.Close())
	s.Redis = redis.NewClient(&options)
	return most
}

// If large tasks follow many small tasks, the replies of Redis still have a limited size.
func TestReadingTakesLittleMemory(t *testing.T) {
	s := newStore(t)
	const large = 1 << 20
	all := make([]Record, 700)
	for i := range all {
		all[i] = Record{ID: int64(i + 1), Hash: tdf.Hash{"state": "archived", "round": "1"}}
		if i >= 640 {
			all[i].Hash["0:output"] = strings.Repeat("x", large)
		}
	}
	mustRestore(t, s, all...)
	bound := int64(readAtOnce)
	if infoOf(t, s)["redis_version"] == "" {
		bound = hashesUnseen * (large + 100) // the embedded Redis does not report sizes
	}
	most := useMeters(t, s)
	check := func(read int) {
		t.Helper()
		n := most.Swap(0)
		expect.Equal(t, read, len(all), n, bound, "bytes")
		expect.Compare(t, n, ">=", large, read, bound, "bytes")
		expect.Compare(t, n, "<=", bound, read)
	}
	check(len(records(t, s)))
	ids := make([]int64, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	tasks := expect.Result(s.Read(t.Context(), ids, Want{Fields: Whole})).Value(t)
	check(len(tasks))
}

// If the key of a task is not a hash, Records skips the task. It leaves out the updates of rounds that the properties of
// a task do not have yet.
func TestRecordsLeaveOut(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"))
	must(t, s.Redis.Set(t.Context(), s.Keys.Task(1), "x", 0).Err())
	s.Redis.HSet(t.Context(), s.Keys.Task(2), "round", "1", "state", "running")
	for _, id := range []string{"0-7", "1-3", "2-1"} {
		must(t, s.Redis.XAdd(t.Context(), &redis.XAddArgs{Stream: s.Keys.UpdatesPrefix() + "2", ID: id, Values: []string{"line", "x"}}).Err())
	}
	for state, want := range map[string]int{"running": 2, "open": 1} {
		s.Redis.HSet(t.Context(), s.Keys.Task(2), "state", state)
		got := records(t, s)
		expect.MustLen(t, got, 1)
		expect.Equal(t, got[0].ID, 2)
		expect.Len(t, got[0].Updates, want, state)
	}
}

func TestStoredPrograms(t *testing.T) {
	s := newStore(t)
	other := connect(t, s.Addr, s.Keys.Namespace()+"*") // as a pattern, this name would match the first namespace
	mustOpen(t, s, define("x"))
	for _, archive := range []string{"one", "three"} {
		expect.Result(s.PutProgram(t.Context(), []byte(archive))).OK(t)
	}
	programs := expect.Result(s.Programs(t.Context())).Value(t)
	expect.MustLen(t, programs, 2)
	expect.MustEqual(t, programs[0].Bytes+programs[1].Bytes, 8)
	expect.Len(t, programs[0].SHA256, 64)
	expect.Len(t, expect.Result(other.Programs(t.Context())).Value(t), 0, "another namespace")
}
