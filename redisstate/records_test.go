package redisstate_test

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// Redis keeps the record of a client's calls for a day after the last call.
func TestCallsAreRememberedForADay(t *testing.T) {
	s := newStore(t)
	for range 3 {
		mustOpen(t, s, define("a"))
		left := s.Conn.Redis.TTL(t.Context(), s.Keys.Calls(s.Conn.Boot())).Val()
		expect.MustTrue(t, left > time.Hour, "the calls are remembered for", left)
		s.Conn.Redis.Expire(t.Context(), s.Keys.Calls(s.Conn.Boot()), time.Minute) // as if almost a day had passed
		s.Conn.Calls.Kept = s.Conn.Calls.Kept.Add(-24 * time.Hour)
	}
}

func TestAClosedClientLeavesNoRecord(t *testing.T) {
	t.Parallel()
	addr := redistest.Shared(t)
	reader := connect(t, addr, redistest.Namespace(t))
	s := connect(t, addr, reader.Keys.Namespace())
	mustOpen(t, s, define("a"))
	must(t, s.Close())
	expect.Len(t, expect.Result(reader.Conn.Redis.Keys(t.Context(), reader.Keys.Calls("*")).Result()).Value(t), 0)
}

// After a lost reply, a repeated call may arrive late. It must still find the recorded answer, so Close does not remove
// the record.
func TestTheRecordOfALostReplyStays(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	reader := connect(t, redistest.Shared(t), s.Keys.Namespace())
	proxy.DropReplies(2, redistest.Scripts)
	mustOpen(t, s, define("a"))
	must(t, s.Close())
	expect.Equal(t, reader.Conn.Redis.Exists(t.Context(), s.Keys.Calls(s.Conn.Boot())).Val(), 1, "the record is gone")
}

// Each worker's name has a number in Redis. The number expires if no worker uses the name for a month. The original TDF's
// numbers do not expire.
func TestNumbersOfNamesExpire(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	s.Conn.Redis.Set(ctx, s.Keys.WorkerNumber("original"), "7", 0)
	for _, name := range []string{"pod-1", "original", "pod-1"} {
		must(t, took(s.Presence.TakeName(ctx, presence.WorkerInfo{Name: name, Lease: 60}, presence.PriorOwner{})))
	}
	left := s.Conn.Redis.TTL(ctx, s.Keys.WorkerNumber("pod-1")).Val()
	expect.True(t, left >= 29*24*time.Hour, "the number is kept for", left)
	expect.Equal(t, s.Conn.Redis.TTL(ctx, s.Keys.WorkerNumber("original")).Val(), -1, "the original's number is kept for")
	expect.Equal(t, s.Conn.Redis.Get(ctx, s.Keys.WorkerNumber("pod-1")).Val(), "1", "the number")
}

// If a program's archive cannot be added to the list of programs, it is not stored either. If it were stored, users
// could not find and remove it.
func TestNoProgramIsStoredWithoutItsListEntry(t *testing.T) {
	s := newStore(t)
	s.Conn.Redis.Set(t.Context(), s.Keys.Programs(), "not a list", 0)
	source, err := s.Programs.PutProgram(t.Context(), []byte("archive"))
	expect.Fails(t, err, "WRONGTYPE", source)
	expect.Len(t, s.Conn.Redis.Keys(t.Context(), s.Keys.Program("*")).Val(), 0, "left behind")
}

// A failover of Redis can undo changes of a task. Then another claim can end the same round with another result. If a
// manager has read only the first result, it cannot archive the task.
func TestArchiveIsFencedByTheClaim(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		id := put(t, s, task.Succeeded)
		seen := read(t, s, id)
		s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "0:claim", "another", "0:output", "another result")
		m := expect.Result(rules.Archive(seen)).Value(t)
		before := dump(t, s)
		outcomes := expect.Result(s.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("follow-up")}})).Value(t)
		expect.Fails(t, outcomes[0].Err, "")
		expect.Equal(t, changed(t, before, dump(t, s)), "")
		mustMove(t, s, id, rules.Archive)
	})
}

// The original TDF stores no claims. If a manager has read a round without a claim, it can archive the task only if the
// round still has no claim.
func TestArchiveOfARoundWithoutAClaim(t *testing.T) {
	s := newStore(t)
	for _, claimed := range []bool{false, true} {
		id := put(t, s, task.Succeeded)
		claim := read(t, s, id).Current().Claim
		s.Conn.Redis.HDel(t.Context(), s.Keys.Task(id), "0:claim")
		m := expect.Result(rules.Archive(read(t, s, id))).Value(t)
		if claimed {
			s.Conn.Redis.HSet(t.Context(), s.Keys.Task(id), "0:claim", claim)
		}
		outcomes := expect.Result(s.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)
		expect.Equal(t, outcomes[0].Err != nil, claimed)
	}
}
