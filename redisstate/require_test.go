package redisstate_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

func requiredOf(t *testing.T, s *redisstate.Store, id int64) redisstate.TaskVersion {
	t.Helper()
	v := read(t, s, id)
	return redisstate.TaskVersion{ID: id, State: v.State, Round: v.Round, Revision: v.Revision}
}

// A claim that requires tasks gets something only while all of them are unchanged. Otherwise it names all that have changed, and
// changes nothing, whether or not there are tasks to claim.
func TestClaimsThatRequireTasks(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ids := mustOpen(t, s, define("a"), define("b"), define("c"), define("d"), define("e"))
		mustMove(t, s, ids[4], rules.Cancel)
		var all []redisstate.TaskVersion
		for _, id := range ids[1:] {
			all = append(all, requiredOf(t, s, id))
		}
		claim := func(all ...redisstate.TaskVersion) (redisstate.ClaimResult, error) {
			return s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 30, Require: all})
		}
		c := expect.Result(claim(all...)).Value(t)
		expect.MustLen(t, c.Claims, 1)
		expect.Equal(t, c.Claims[0].Task.ID, ids[0])

		m, err := rules.Change(read(t, s, ids[1]), task.Changes{Input: new("new")}) // revision
		mustApply(t, s, m, err)
		mustMove(t, s, ids[2], rules.Cancel) // state
		mustMove(t, s, ids[2], rules.Remove) // no task
		mustMove(t, s, ids[4], rules.Reopen) // round
		s.Conn.Redis.Set(t.Context(), s.Keys.Task(77), "a string", 0)
		before := dump(t, s)
		wanted := append(all, redisstate.TaskVersion{ID: 77, State: task.Open}, redisstate.TaskVersion{ID: 78, State: task.Open}, redisstate.TaskVersion{ID: ids[3], State: task.Running})
		_, err = claim(wanted...)
		e := new(redisstate.RequireError)
		expect.True(t, errors.As(err, &e), err)
		expect.Equal(t, e.IDs, []int64{ids[1], ids[2], ids[4], 77, 78, ids[3]})
		expect.Equal(t, changed(t, before, dump(t, s)), "")
		c, err = claim(requiredOf(t, s, ids[1]), all[2])
		expect.NoError(t, err)
		expect.Len(t, c.Claims, 1)
	})
}

// A task that a manager of the original TDF has archived is no longer as it was, although its state is.
func TestClaimsThatRequireTasksOfTheOriginal(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, define("a"), define("b"))
	mustMove(t, s, ids[1], rules.Cancel)
	of := requiredOf(t, s, ids[1])
	s.Conn.Redis.ZRem(t.Context(), s.Keys.List(task.Expired), ids[1])
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Archived), redis.Z{Score: 1.7e9, Member: ids[1]})
	_, err := s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 30, Require: []redisstate.TaskVersion{of}})
	expect.True(t, errors.As(err, new(*redisstate.RequireError)), err)
}

// If Redis's answer is lost, the repeated claim gets the same task, although its requirement no longer holds.
func TestRepeatedClaimThatRequires(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, define("a"), define("b"))
	call := expect.Result(s.ClaimCall(t.Context(), "session", 1)).Value(t)
	r := redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 30, Call: call, IDs: "c", Require: []redisstate.TaskVersion{requiredOf(t, s, ids[0])}}
	first := expect.Result(s.Claim(t.Context(), r)).Value(t) // the claim itself changes the required task
	r.Call = expect.Result(s.ClaimCall(t.Context(), "session", 1)).Value(t)
	again := expect.Result(s.Claim(t.Context(), r)).Value(t)
	expect.MustLen(t, first.Claims, 1)
	expect.MustLen(t, again.Claims, 1)
	expect.Equal(t, again.Claims[0].ID, first.Claims[0].ID)
}
