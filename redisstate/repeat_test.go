package redisstate_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/periodics"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/redisstate/stages"
)

// If one to three replies to a writing call are lost, the answer and all data in Redis are as if no reply was lost. While
// the slot of the namespace moves to another node of a cluster, a call changes nothing. It is repeated, and then the
// answer and all data are the same, too.
func TestRepeatedCallsChangeNothing(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	token, _, err := access.New(access.Token{Name: "a", Role: access.Worker, Queues: []string{"q"}})
	expect.NoError(t, err)
	for _, call := range []struct {
		name string
		make func(ctx context.Context, t *testing.T, s *redisstate.Store) any
	}{
		{"open", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			ids, err := s.Open(ctx, "manager", define("a"), define("b"))
			return fmt.Sprint(ids, err)
		}},
		{"claim", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			c, err := s.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 3, Lease: 60})
			var got []string
			for _, claim := range c.Claims {
				got = append(got, fmt.Sprint(claim.Task.ID, claim.Task.Input, claim.Task.State, claim.Task.Round))
			}
			return fmt.Sprint(got, err)
		}},
		{"renew", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			running := read(t, s, runningID)
			checkpoint := "so far"
			renewed, err := s.Renew(ctx, 60,
				redisstate.LeaseRenewal{
					ID: runningID, Claim: running.Current().Claim, Begun: true, Limit: 50,
					Report: redisstate.LiveReport{Checkpoint: &checkpoint, Updates: []string{"one", "two"}, FirstUpdate: 1},
				},
				redisstate.LeaseRenewal{ID: runningID, Round: 1, Claim: "another"})
			return fmt.Sprint(renewed.Lost, err)
		}},
		{"take a name", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			return fmt.Sprint(took(s.Presence.TakeName(ctx, presence.WorkerInfo{Name: "w", Lease: 3600}, presence.PriorOwner{})))
		}},
		{"execute", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			running := read(t, s, runningID)
			m, _ := rules.Execute(running, running.Current().Claim, rules.Result{Output: "o", Exit: "0"})
			return fmt.Sprint(s.Execute(ctx, "w", m))
		}},
		{"execute, and open tasks", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			running := read(t, s, runningID)
			m, _ := rules.Execute(running, running.Current().Claim, rules.Result{Output: "o", Exit: "0"})
			return fmt.Sprint(s.Apply(ctx, "w", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("a"), define("b")}, ByRound: true}))
		}},
		{"settle", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, ok := rules.Settle(read(t, s, executedID), 0, nil)
			return fmt.Sprint(ok, fmt.Sprint(s.Apply(ctx, "server", redisstate.Unit{Moves: []rules.Move{m}})))
		}},
		{"execute and settle", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			running, r := read(t, s, runningID), rules.Result{Output: "o", Exit: "0"}
			m, _ := rules.Execute(running, running.Current().Claim, r)
			return fmt.Sprint(s.Execute(ctx, "w", m.Settled(running, r)))
		}},
		{"release", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Release(read(t, s, runningID), "draining")
			return fmt.Sprint(s.Apply(ctx, "w", redisstate.Unit{Moves: []rules.Move{m}}))
		}},
		{"archive with a follow-up", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Archive(read(t, s, succeededID))
			return fmt.Sprint(s.Apply(ctx, "manager", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("next")}}))
		}},
		{"a transaction", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Archive(read(t, s, succeededID))
			open := read(t, s, firstOpenID)
			cancel, _ := rules.Cancel(open)
			u := redisstate.Unit{
				Moves: []rules.Move{m, cancel.IfUnchanged(open), rules.Require(read(t, s, runningID))},
				Open:  []task.Properties{define("next")},
			}
			return fmt.Sprint(s.Apply(ctx, "manager", u))
		}},
		{"close and extend a group", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			return fmt.Sprint(s.Open(ctx, "m", grouped("g"))) + fmt.Sprint(s.Groups.CloseGroup(ctx, "g"), s.Groups.ExtendGroup(ctx, "g"), s.Groups.CloseGroup(ctx, "g"))
		}},
		{"decide a group", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			ids, err := s.Open(ctx, "m", grouped("g"))
			m, _ := rules.Cancel(read(t, s, ids[0]))
			u := redisstate.Unit{Decide: "g", Open: []task.Properties{define("next")}}
			return fmt.Sprint(ids, err, s.Groups.CloseGroup(ctx, "g")) + fmt.Sprint(s.Apply(ctx, "m", redisstate.Unit{Moves: []rules.Move{m}})) + fmt.Sprint(s.Apply(ctx, "m", u))
		}},
		{"change the record of a stage", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			stored := stages.Of(s).StoreDefinitions(ctx, "X", 0, []task.Properties{define("next")})
			keep := stageChange(task.StageRecord{}, begun)
			keep.Definitions, keep.Chunks = "X", 1
			u := redisstate.Unit{Stage: keep, Open: []task.Properties{define("next")}}
			remove := redisstate.Unit{Stage: &redisstate.StageChange{Stage: "p/s", From: begun, To: task.StageRecord{Phase: task.StageOpened}, Definitions: "X"}}
			return fmt.Sprint(stored) + fmt.Sprint(s.Apply(ctx, "m", u)) + fmt.Sprint(s.Apply(ctx, "m", remove))
		}},
		{"open a periodic", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			var all []any
			for _, change := range [][2]string{{"", `{"ids":[]}`}, {`{"ids":[]}`, `{"ids":[7]}`}, {"", "x"}} {
				ids, err := periodics.Of(s).ChangePeriodic(ctx, "server", "p", change[0], change[1], define("a"), define("b"))
				all = append(all, ids, err)
			}
			return fmt.Sprint(all...)
		}},
		{"remove", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Remove(read(t, s, succeededID))
			return fmt.Sprint(s.Apply(ctx, "manager", redisstate.Unit{Moves: []rules.Move{m}}))
		}},
		{"change", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Change(read(t, s, firstOpenID), task.Changes{Input: new("other")})
			return fmt.Sprint(s.Apply(ctx, "manager", redisstate.Unit{Moves: []rules.Move{m}}))
		}},
		{"requeue elsewhere", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Requeue(read(t, s, runningID), true)
			return fmt.Sprint(s.Apply(ctx, "manager", redisstate.Unit{Moves: []rules.Move{m}}))
		}},
		{"limits", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			mustLimit(t, s, "db", running(1))
			mustOpen(t, s, limitedBy("db"), limitedBy("db"))
			ids := claimAll(t, s, 10)
			return fmt.Sprint(ids, s.Limits.RemoveLimit(ctx, "db"), returnWaiting(t, s), claimAll(t, s, 10))
		}},
		{"tokens", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			return fmt.Sprint(s.Accounts.RemoveToken(ctx, "other"), s.Accounts.AddToken(ctx, token), s.Accounts.AddToken(ctx, token), s.Accounts.RemoveToken(ctx, "a"))
		}},
		{"a move that is refused", func(ctx context.Context, t *testing.T, s *redisstate.Store) any {
			m, _ := rules.Archive(read(t, s, succeededID))
			m.Round = 5
			return fmt.Sprint(s.Apply(ctx, "manager", redisstate.Unit{Moves: []rules.Move{m}}))
		}},
	} {
		t.Run(call.name, func(t *testing.T) {
			undisturbed := prepared(t, redistest.Shared(t))
			want := call.make(t.Context(), t, undisturbed)
			wantWorld := anonymize(dump(t, undisturbed), undisturbed)
			for drops := 1; drops <= 3; drops++ {
				proxy := redistest.NewProxy(t, redistest.Shared(t))
				s := prepared(t, proxy.Addr)
				proxy.DropReplies(drops, redistest.Scripts)
				got := call.make(t.Context(), t, s)
				expect.MustEqual(t, proxy.Dropped(), drops, "replies were dropped of")
				expect.True(t, got == want, drops, "replies lost: answered", got, "want", want)
				expect.Equal(t, changed(t, wantWorld, anonymize(dump(t, s), s)), "", drops, "replies lost")
				mustBeSound(t, s)
			}
			s := prepared(t, config.Redis{Cluster: cluster.Addrs()}.Addr())
			before := readAll(t, s)
			other := cluster.Other(s.Keys.Schema())
			cluster.Migrate(s.Keys.Schema(), other)
			var got any
			var calling sync.WaitGroup
			calling.Go(func() { got = call.make(t.Context(), t, s) })
			expect.Eventually(t, "the call waits", func() bool { return s.Conn.Outages() > 0 })
			expect.Equal(t, changed(t, before, readAll(t, s)), "", "while the slot moves")
			cluster.Stay(s.Keys.Schema(), other)
			calling.Wait()
			expect.Equal(t, got, want, "after the slot has moved")
			expect.Equal(t, changed(t, wantWorld, anonymize(dump(t, s), s)), "", "after the slot has moved")
		})
	}
}

// A read of which a reply is lost is repeated, and returns what it would have returned.
func TestRepeatedReads(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	drop := func(command, key string) {
		proxy.DropReplies(1, func(c []string) bool { return strings.EqualFold(c[0], command) && c[1] == key })
	}
	mustOpen(t, s, grouped("g"), grouped("g"))
	drop("ZSCORE", s.Keys.Group("g"))
	expect.Len(t, expect.Result(audit.Of(s).Examine(t.Context(), []int64{1, 2})).Value(t), 0)
	mustLimit(t, s, "db", running(1))
	mustLimit(t, s, "web", running(1))
	mustOpen(t, s, limitedBy("db"), limitedBy("db"), limitedBy("web"), limitedBy("web"))
	claimAll(t, s, 10)
	drop("ZCARD", s.Keys.OpenSet(task.LimitReason("web")))
	uses := expect.Result(s.Limits.LimitUses(t.Context(), "db", "web")).Value(t)
	expect.Equal(t, uses[0].Waiting+uses[1].Waiting, 2)
	expect.Equal(t, proxy.Dropped(), 2)
}

// The ids of the tasks in a prepared namespace, in the order in which they were opened.
const (
	succeededID = 1 + iota
	executedID
	runningID
	firstOpenID
)

func prepared(t *testing.T, addr string) *redisstate.Store {
	s := connect(t, addr, redistest.Namespace(t))
	put(t, s, task.Succeeded)
	put(t, s, task.Executed)
	put(t, s, task.Running)
	mustOpen(t, s, define("first"), define("second"))
	return s
}

var claimIDs = regexp.MustCompile(`[A-Z2-7]{26}\.`)

var boots = regexp.MustCompile(`boot=[A-Z2-7]{26}`)

// anonymize replaces the parts of a world that differ between namespaces: the name of the namespace, boot ids and claim
// ids.
func anonymize(w world, s *redisstate.Store) world {
	for key, value := range w {
		value = boots.ReplaceAllString(value, "boot=B")
		w[key] = claimIDs.ReplaceAllString(regexp.MustCompile(regexp.QuoteMeta(s.Keys.Namespace())).ReplaceAllString(value, "NS"), "C.")
	}
	return w
}

// If Redis has already answered a later call of the same call slot, a late call does nothing.
func TestLateCallIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, define("a"))
		for range 2 {
			s.Conn.Calls.Last[0] -= 2 // the next call gets the number of an older call
			before := dump(t, s)
			expect.Result(s.Open(t.Context(), "manager", define("late"))).Fails(t, "", "a late call was accepted")
			expect.Equal(t, changed(t, before, dump(t, s)), "")
			s.Conn.Calls.Last[0] += 1
		}
	})
}
