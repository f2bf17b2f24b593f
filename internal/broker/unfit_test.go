package broker

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// long is a text of which Redis should keep only the beginning.
var long = strings.Repeat("x ", 1<<12)

// A countingStore has running tasks, and counts the readings that do not depend on a task.
type countingStore struct {
	whole
	claim   func(id int64) string
	counts  map[string]int
	workers []presence.WorkerStatus
}

func (s *countingStore) task(id int64) *task.Task {
	return &task.Task{
		ID: id, State: task.Running, Properties: task.Defaults(long, "rsync:/p", ""), Rounds: task.Rounds{0: {Claim: s.claim(id)}},
	}
}

func (s *countingStore) Now(context.Context) (task.Time, error) {
	s.counts["now"]++
	return 1, nil
}

func (s *countingStore) Workers(context.Context) ([]presence.WorkerStatus, error) {
	s.counts["workers"]++
	return slices.Clone(s.workers), nil
}

func (s *countingStore) Room(context.Context) (settings task.Settings, invalid error, m task.Memory, err error) {
	s.counts["room"]++
	return settings, nil, m, nil
}

func (s *countingStore) RoundsOpen(context.Context) error { return nil }

func (s *countingStore) Read(_ context.Context, ids []int64, _ redisstate.Want) (all []redisstate.Stored, err error) {
	for _, id := range ids {
		all = append(all, redisstate.Stored{Task: s.task(id)})
	}
	return all, nil
}

func (s *countingStore) ReadOne(_ context.Context, id int64, _ redisstate.Want) (redisstate.Stored, error) {
	return redisstate.Stored{Task: s.task(id)}, nil
}

func (s *countingStore) Apply(_ context.Context, _ string, units ...redisstate.Unit) ([]redisstate.Outcome, error) {
	return make([]redisstate.Outcome, len(units)), nil
}

func (s *countingStore) Execute(_ context.Context, _ string, moves ...rules.Move) ([]redisstate.Outcome, error) {
	return make([]redisstate.Outcome, len(moves)), nil
}

func (s *countingStore) FailedToStart(_ context.Context, _, _ string, _ bool, program, why string) error {
	s.counts["failures"]++
	s.counts["bytes"] = max(s.counts["bytes"], len(program)+len(why))
	return nil
}

// However many tasks a worker could not start, one call with its reports reads the workers and the settings once, and
// notes few failures. What
// Redis keeps of each failure is short.
func TestReportsOfFailuresReadOnce(t *testing.T) {
	const n = 5
	token := &access.Token{Name: "t"}
	session := sessionOf("t/w", "k")
	claim := func(id int64) string { return session.claimIDs("r") + ".1" }
	for kind, call := range map[string]func(s *countingStore) error{
		"direct": func(s *countingStore) error {
			all := make([]*Delivery, 2*n)
			for i := range all {
				all[i] = &Delivery{Task: s.task(int64(i + 1)), Ending: Ending{Way: Unfit}}
				if i%2 == 0 {
					all[i].Ending = Ending{Unstarted: true, Result: rules.Result{Refused: true, Reason: long}}
				}
			}
			_, err := NewDirect(s, "w", class.Offer{}, 60).Exchange(t.Context(), t.Context(), nil, all...)
			return err
		},
		"http": func(s *countingStore) error {
			all := make([]Report, 2*n)
			for i := range all {
				all[i] = Report{Run: Run{ID: int64(i + 1), Claim: claim(1)}, Action: "fail", Error: long, Unfit: i%2 == 0, Unstarted: i%2 == 1}
			}
			_, err := (&Broker{store: s}).Report(t.Context(), token, session.id(), all)
			return err
		},
	} {
		s := &countingStore{claim: claim, counts: map[string]int{}}
		expect.NoError(t, call(s), kind)
		expect.Equal(t, s.counts["failures"], heldAfter, kind)
		expect.Compare(t, s.counts["now"], "<=", 2, kind)
		expect.Equal(t, s.counts["workers"], 1, kind)
		expect.Equal(t, s.counts["room"], 1, kind)
		expect.Compare(t, s.counts["bytes"], "<=", 3*MaxShort, kind)
	}
}

// A task that a worker could not start waits only for workers that claim tasks.
func TestTasksWaitForWorkersThatClaim(t *testing.T) {
	s := &countingStore{claim: func(int64) string { return "c" }, counts: map[string]int{}}
	for _, state := range []string{presence.WorkerWorking, presence.WorkerStarting, presence.WorkerDraining, presence.WorkerGone} {
		for _, drained := range []string{"", "alice"} {
			s.workers = []presence.WorkerStatus{{
				Drained: drained, Seen: 1,
				WorkerInfo: presence.WorkerInfo{Name: state, State: state, Lease: 60, Offer: class.Offer{Programs: true}},
			}}
			x := expect.Result(newWitness(t.Context(), s, "w").see(t.Context(), 1)).Value(t)
			expect.Equal(t, x.left, state == presence.WorkerWorking && drained == "", state, drained)
		}
	}
}
