package redisstate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/stages"
)

var begun = task.StageRecord{Phase: task.StageOpening, Done: 2, Digest: "ab"}

func stageChange(from, to task.StageRecord) *redisstate.StageChange {
	return &redisstate.StageChange{Stage: "p/s", From: from, To: to}
}

// checkRecord checks the record of the stage p/s.
func checkRecord(t *testing.T, s *redisstate.Store, want task.StageRecord) {
	t.Helper()
	records, invalid, err := stages.Of(s).StageRecords(t.Context(), []string{"p/none", "p/s"})
	expect.NoError(t, err)
	expect.NoError(t, errors.Join(invalid...))
	expect.MustEqual(t, records[0], task.StageRecord{})
	expect.Equal(t, records[1], want)
}

// A unit changes the record of a stage only if the stage has the required record. Otherwise, nothing of the unit happens.
func TestStageChange(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		opened := task.StageRecord{Phase: task.StageOpened}
		try := func(want []error, changes ...*redisstate.StageChange) {
			t.Helper()
			before := dump(t, s)
			var units []redisstate.Unit
			for _, c := range changes {
				units = append(units, redisstate.Unit{Open: []task.Properties{grouped("p/s")}, Stage: c})
			}
			outcomes := expect.Result(s.Apply(t.Context(), "m", units...)).Value(t)
			for i, o := range outcomes {
				expect.FailsWith(t, o.Err, want[i], "unit", i)
				if want[i] == nil {
					expect.NoError(t, o.Err, "unit", i)
				}
			}
			diff := changed(t, before, dump(t, s))
			if diff != "" {
				expect.True(t, slices.Contains(want, nil), diff)
			}
		}
		try([]error{redisstate.ErrRecordChanged}, stageChange(begun, opened))
		try([]error{nil, redisstate.ErrRecordChanged}, stageChange(task.StageRecord{}, begun), stageChange(task.StageRecord{}, begun))
		checkRecord(t, s, begun)
		try([]error{nil, nil}, stageChange(begun, task.StageRecord{Phase: task.StageOpening, Done: 3, Digest: "c"}), stageChange(task.StageRecord{Phase: task.StageOpening, Done: 3, Digest: "c"}, opened))
		checkRecord(t, s, opened)
		try([]error{redisstate.ErrRecordChanged}, stageChange(begun, begun))
		expect.Equal(t, expect.Result(s.Counts(t.Context(), "p/s")).Value(t)[task.Open], 3)
		must(t, stages.Of(s).RemoveStageRecords(t.Context(), []string{"p/s", "p/other"}))
		checkRecord(t, s, task.StageRecord{})
		mustBeSound(t, s)
	})
}

// A unit that is refused for another reason does not change the record, and the next unit sees the old record.
func TestRefusedStageChange(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, grouped("g"))
	outcomes, err := s.Apply(t.Context(), "m", redisstate.Unit{Decide: "g", Stage: stageChange(task.StageRecord{}, begun)}, redisstate.Unit{If: redisstate.NewGroup("g"), Stage: stageChange(task.StageRecord{}, begun)})
	must(t, err)
	expect.FailsWith(t, outcomes[0].Err, task.ErrGroupNotClosed)
	expect.FailsWith(t, outcomes[1].Err, redisstate.ErrGroupTaken)
	checkRecord(t, s, task.StageRecord{})
	must(t, s.Groups.CloseGroup(t.Context(), "g"))
	mustMove(t, s, ids[0], rules.Cancel)
	outcomes, err = s.Apply(t.Context(), "m", redisstate.Unit{If: redisstate.NewGroup("g"), Stage: stageChange(task.StageRecord{}, begun)}, redisstate.Unit{Decide: "g", Stage: stageChange(task.StageRecord{}, begun)})
	must(t, err)
	expect.MustTrue(t, outcomes[0].Err != nil, outcomes)
	expect.NoError(t, outcomes[1].Err)
	checkRecord(t, s, begun)
}

// Stored definitions expire, unless a stage needs them. They vanish with the change that needs them no longer.
func TestDefinitions(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		d := grouped("p/s")
		d.Input, d.Tags, d.Meta = "\xff\x00 'x", []string{"a", "b"}, "\x00"
		must(t, stages.Of(s).StoreDefinitions(t.Context(), "X", 0, []task.Properties{d}))
		expect.Result(stages.Of(s).Definitions(t.Context(), "X", 0)).Fails(t, "NUL", "an invalid definition was read")
		d.Input, d.Meta = "\xff 'x y'", "m"
		for chunk := range 2 {
			must(t, stages.Of(s).StoreDefinitions(t.Context(), "X", chunk, []task.Properties{d, grouped("p/s")}))
		}
		got := expect.Result(stages.Of(s).Definitions(t.Context(), "X", 1)).Value(t)
		expect.MustLen(t, got, 2)
		expect.MustEqual(t, got[0].Input, d.Input)
		expect.MustEqual(t, got[0].Tags, d.Tags)
		expect.MustEqual(t, got[0].EndBefore, task.Never)
		expect.Equal(t, got[1].Group, "p/s")
		key := s.Keys.Definitions("X")
		ttl := s.Conn.Redis.TTL(t.Context(), key).Val()
		expect.True(t, ttl > 0, "the definitions never expire", ttl)
		stored := task.StageRecord{Phase: task.StageStored, Chunks: 2, Stored: "X"}
		keep := stageChange(task.StageRecord{}, stored)
		keep.Definitions, keep.Chunks = "none", 1
		outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: keep})).Value(t)
		expect.True(t, errors.Is(outcomes[0].Err, redisstate.ErrNoDefinitions), "definitions that do not exist were kept", outcomes)
		keep.Definitions, keep.Chunks = "X", 3
		outcomes = expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: keep})).Value(t)
		expect.True(t, errors.Is(outcomes[0].Err, redisstate.ErrNoDefinitions), "definitions without their last chunk were kept", outcomes)
		keep.Chunks = 2
		outcomes = expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: keep})).Value(t)
		expect.NoError(t, outcomes[0].Err)
		expect.Equal(t, s.Conn.Redis.TTL(t.Context(), key).Val(), -1)
		checkRecord(t, s, stored)
		opened := task.StageRecord{Phase: task.StageOpened}
		for chunk, next := range []task.StageRecord{{Phase: task.StageStored, Done: 1, Chunks: 2, Stored: "X"}, opened} {
			open := stageChange(stored, next)
			open.Definitions, open.Opened = "X", chunk
			outcomes = expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: open})).Value(t)
			expect.NoError(t, outcomes[0].Err, "after chunk", chunk)
			expect.Equal(t, s.Conn.Redis.HLen(t.Context(), key).Val(), int64(1-chunk), "after chunk", chunk)
			stored = next
		}
		expect.Result(stages.Of(s).Definitions(t.Context(), "X", 0)).FailsWith(t, redisstate.ErrNoDefinitions)
		must(t, stages.Of(s).StoreDefinitions(t.Context(), "Y", 0, got))
		must(t, stages.Of(s).RemoveDefinitions(t.Context(), "Y"))
		expect.Equal(t, s.Conn.Redis.Exists(t.Context(), s.Keys.Definitions("Y")).Val(), 0, "the definitions were not removed")
	})
}

// Data of another program does not stop other tasks, and the error names it.
func TestForeignStages(t *testing.T) {
	s := newStore(t)
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Pipelines(), "p/s", "foreign\n"+strings.Repeat("x", 1000)).Err())
	_, invalid, err := stages.Of(s).StageRecords(t.Context(), []string{"p/s"})
	expect.NoError(t, err)
	expect.Fails(t, invalid[0], "")
	outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: stageChange(task.StageRecord{}, begun)})).Value(t)
	expect.FailsWith(t, outcomes[0].Err, redisstate.ErrRecordChanged)
	expect.Contains(t, outcomes[0].Err.Error(), `"foreign?xxx`)
	expect.Compare(t, len(outcomes[0].Err.Error()), "<=", 300)
	for name, value := range map[string]string{"A": "no gob", "B": ""} {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Definitions(name), "0", value).Err())
		expect.Result(stages.Of(s).Definitions(t.Context(), name, 0)).Fails(t, "", "definitions", value, "were read")
	}
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Definitions("C"), "text", 0).Err())
	if _, err := stages.Of(s).Definitions(t.Context(), "C", 0); err == nil || !conn.IsWrongType(errors.Unwrap(err)) {
		t.Error(err)
	}
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Pipelines()).Err())
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Pipelines(), "text", 0).Err())
	outcomes = expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: stageChange(task.StageRecord{}, begun)}, redisstate.Unit{Open: []task.Properties{define("x")}, If: redisstate.NewGroup("n")})).Value(t)
	expect.NoError(t, outcomes[1].Err)
	expect.Fails(t, outcomes[0].Err, s.Keys.Pipelines()+" is not a hash")
	if _, _, err := stages.Of(s).StageRecords(t.Context(), []string{"p/s"}); err == nil {
		t.Error("records of a wrong type were read")
	}
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Pipelines()).Err())
}

// A unit that decides a group may exceed max_tasks, because the tasks of the group cannot be archived before.
func TestMaxTasksRefusesNoDecision(t *testing.T) {
	s := newStore(t)
	ids := mustOpen(t, s, grouped("g"))
	must(t, s.Groups.CloseGroup(t.Context(), "g"))
	mustMove(t, s, ids[0], rules.Cancel)
	limitTasks(t, s, "1")
	outcomes, err := s.Apply(t.Context(), "m",
		redisstate.Unit{Open: []task.Properties{define("x")}, Stage: stageChange(task.StageRecord{}, begun)},
		redisstate.Unit{Open: []task.Properties{define("x"), define("y")}, Decide: "g", Stage: stageChange(task.StageRecord{}, begun)})
	must(t, err)
	expect.MustTrue(t, tooMany(outcomes[0].Err, 2, 1), outcomes)
	expect.NoError(t, outcomes[1].Err)
}

// A unit that changes a stage does not wait for memory. Its manager must archive tasks meanwhile.
func TestStagesDoNotWaitForMemory(t *testing.T) {
	t.Parallel()
	s, lines, use := limited(t)
	ids := mustOpen(t, s, grouped("g"))
	must(t, s.Groups.CloseGroup(t.Context(), "g"))
	mustMove(t, s, ids[0], rules.Cancel)
	use(0.85)
	if _, err := s.Apply(t.Context(), "m", redisstate.Unit{Open: []task.Properties{define("x")}, Stage: stageChange(task.StageRecord{}, begun)}); err != redisstate.ErrNoRoom {
		t.Error(err)
	}
	expect.Contains(t, <-lines, "new tasks wait")
	outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Open: []task.Properties{define("x")}, Decide: "g", Stage: stageChange(task.StageRecord{}, begun)})).Value(t)
	expect.NoError(t, outcomes[0].Err)
	expect.FailsWith(t, stages.Of(s).StoreDefinitions(t.Context(), "X", 0, []task.Properties{define("x")}), redisstate.ErrNoRoom)
	must(t, s.ChangeSetting(t.Context(), task.SettingHighWater, "1"))
	use(0.99)
	must(t, stages.Of(s).StoreDefinitions(t.Context(), "X", 0, []task.Properties{define("x")}))
}

// A pipeline goes on if the group of its stage was decided for tasks that wait for the group. Its record decides the stage once.
func TestDecisionOfADecidedStage(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, ofGroup("p/a", 1)...)
	must(t, s.Groups.CloseGroup(t.Context(), "p/a"))
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Groups(), "p/a", "decided 1").Err())
	decide := func() redisstate.Outcome {
		change := &redisstate.StageChange{Stage: "p/b", To: task.StageRecord{Phase: task.StageOpened}}
		outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Decide: "p/a", Stage: change, Open: ofGroup("p/b", 1)})).Value(t)
		return outcomes[0]
	}
	o := decide()
	if !errors.Is(o.Err, task.ErrGroupUnfinished) {
		expect.FailsWith(t, o.Err, task.ErrGroupDecided)
	}
	m := expect.Result(rules.Cancel(read(t, s, 1))).Value(t)
	expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{m}})).OK(t)
	if o := decide(); o.Err != nil || len(o.IDs) != 1 {
		t.Errorf("%+v", o)
	}
	expect.FailsWith(t, decide().Err, redisstate.ErrRecordChanged)
}

// The tasks that follow a stage without tasks are follow-ups. They may exceed max_tasks. The tasks of a start may not.
func TestStepAfterAnEmptyStage(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"))
	limitTasks(t, s, "1")
	u := redisstate.Unit{Open: []task.Properties{grouped("p/s")}, If: redisstate.NewGroup("p/s"), Stage: stageChange(task.StageRecord{}, begun)}
	outcomes := expect.Result(s.Apply(t.Context(), "m", u)).Value(t)
	expect.True(t, errors.As(outcomes[0].Err, new(*task.TasksLimitError)), "a start", outcomes)
	u.If = redisstate.NewGroup("p/before")
	outcomes = expect.Result(s.Apply(t.Context(), "m", u)).Value(t)
	expect.True(t, outcomes[0].Err == nil, "a step after an empty stage", outcomes)
	checkRecord(t, s, begun)
}
