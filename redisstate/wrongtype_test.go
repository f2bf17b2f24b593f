package redisstate_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// If a key has another type than a script expects, the script either does all of its work or changes nothing.

func TestAGroupKeyOfAnotherTypeStopsNoTask(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		grouped := define("grouped")
		grouped.Group = "g"
		ids := mustOpen(t, s, grouped)
		s.Conn.Redis.Del(t.Context(), s.Keys.Group("g"))
		s.Conn.Redis.Set(t.Context(), s.Keys.Group("g"), "not an index", 0)
		c := mustClaim(t, s, 1)
		expect.MustLen(t, c, 1, "the task was not claimed")
		mustExecute(t, s, c[0], rules.Result{Exit: "0"})
		mustSettle(t, s, ids[0])
		m, err := rules.Archive(read(t, s, ids[0]))
		follow := define("not grouped")
		outcomes, applyErr := s.Apply(t.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{follow}})
		expect.NoError(t, err)
		expect.NoError(t, applyErr)
		expect.NoError(t, outcomes[0].Err)
		expect.Equal(t, read(t, s, ids[0]).State, task.Archived, "the task")
		before := dump(t, s)
		expect.Result(s.Open(t.Context(), "manager", grouped)).Fails(t, "group:g is not the index of a group", "opening a task of the group")
		expect.Equal(t, changed(t, before, dump(t, s)), "")
	})
}

func TestAListOfAnotherTypeChangesNothing(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"due", "running", "open", "executed"} {
		t.Run(key, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				mustOpen(t, s, define("a"), define("b"))
				c := mustClaim(t, s, 1)[0]
				s.Conn.Redis.Del(t.Context(), s.Keys.Key(key))
				s.Conn.Redis.Set(t.Context(), s.Keys.Key(key), "not a list", 0)
				before := dump(t, s)
				m, _ := rules.Execute(c.Task, c.ID, rules.Result{Exit: "0"})
				_, executing := s.Execute(t.Context(), "w", m)
				_, claiming := s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})
				_, renewing := s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: 1, Claim: c.ID})
				if key == "due" {
					expect.Equal(t, changed(t, before, dump(t, s)), "")
				}
				_, opening := s.Open(t.Context(), "manager", define("c"))
				want := map[string][4]bool{ // whether execute, claim, open and renew fail
					"due": {true, true, false, true}, "running": {true, true, false, false},
					"open": {false, true, true, false}, "executed": {true, false, false, false},
				}[key]
				for i, err := range []error{executing, claiming, opening, renewing} {
					expect.MustEqual(t, err != nil, want[i], key, "call", i)
					if err != nil {
						expect.Contains(t, err.Error(), s.Keys.Key(key)+" is not a sorted set", key, "call", i)
					}
				}
			})
		})
	}
}

func TestRenewPassesKeysOfOtherTypes(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"))
	claims := mustClaim(t, s, 2)
	s.Conn.Redis.Del(t.Context(), s.Keys.Task(1))
	s.Conn.Redis.Set(t.Context(), s.Keys.Task(1), "not a hash", 0)
	before := read(t, s, 2).LeaseUntil
	renewed, err := s.Renew(t.Context(), 7200,
		redisstate.LeaseRenewal{ID: 1, Claim: claims[0].ID}, redisstate.LeaseRenewal{ID: 2, Claim: claims[1].ID})
	expect.NoError(t, err)
	expect.MustTrue(t, renewed.Lost[0] != nil, renewed.Lost, err)
	expect.NoError(t, renewed.Lost[1])
	after := read(t, s, 2).LeaseUntil
	expect.True(t, after > before, "the lease of task 2 ends at", after, "and ended at", before, "before the renewal")
}

func TestAWakeListOfAnotherTypeStopsNothing(t *testing.T) {
	s := newStore(t)
	s.Conn.Redis.Set(t.Context(), s.Keys.WakeOpen(), "not a list", 0)
	expect.Len(t, mustOpen(t, s, define("a")), 1)
	mustBeSound(t, s)
}

// If the next ids after the counter are taken, Open gives higher ids to the new tasks.
func TestIDsBehindManyTakenOnes(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ctx := t.Context()
		for id := 1; id <= 3000; id++ {
			s.Conn.Redis.HSet(ctx, s.Keys.Task(int64(id)), "state", "archived")
		}
		ids := mustOpen(t, s, define("a"), define("b"))
		expect.MustTrue(t, ids[0] > 3000, "ids", ids)
		expect.Equal(t, ids[1], ids[0]+1)
	})
}

func TestFindingIDsCostsFewCommands(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	backlog(t, s, "p", 20_000)
	s.Conn.Redis.Del(t.Context(), s.Keys.TaskID())
	before := commandCalls(t, s, "exists")
	mustOpen(t, s, define("a"))
	n := commandCalls(t, s, "exists") - before
	expect.True(t, n <= 41, n, "commands to find an id")
}

func TestNoIDsAreLeft(t *testing.T) {
	t.Parallel()
	for counter, opens := range map[string]bool{
		"1099511627773": true, "1099511627774": true, "1099511627775": false, "9007199254740992": false, "1e300": false,
		"many": false, "-5": false, "inf": false,
	} {
		t.Run(counter, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				s.Conn.Redis.Set(t.Context(), s.Keys.TaskID(), counter, 0)
				before := dump(t, s)
				ids, err := s.Open(t.Context(), "manager", define("a"))
				if opens {
					expect.NoError(t, err, counter)
					expect.Compare(t, fmt.Sprint(ids[0]), ">", counter)
				}
				if opens {
					return
				}
				expect.Fails(t, err, "task_id", counter, ids)
				expect.Equal(t, changed(t, before, dump(t, s)), "")
			})
		})
	}
}

// The index of a group contains no task with an id above MaxID. A higher id would give the task a score that means
// another state.
func TestIDsBeyondTheGroupIndex(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	const id = "1099511627777"
	s.Conn.Redis.HSet(ctx, s.Keys.TaskPrefix()+id, "state", "open", "round", 0, "program", "p", "source", "rsync:/p/run.sh", "group", "g")
	s.Conn.Redis.ZAdd(ctx, s.Keys.List(task.Open), redis.Z{Score: 1, Member: id})
	expect.MustLen(t, mustClaim(t, s, 1), 1, "the task was not claimed")
	expect.Equal(t, s.Conn.Redis.Exists(ctx, s.Keys.Group("g")).Val(), 0, "the task is in the index of its group")
}
