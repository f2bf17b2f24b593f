package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// Tasks that name guessed ids can wait for each other for ever. The doctor names them, also if they are neither among the first
// tasks that wait nor among the first dependents of a group.
func TestDiagnoseTasksThatWaitForEachOther(t *testing.T) {
	after := func(ids ...int64) task.Properties {
		d := task.Defaults("p", "rsync:/p/run.sh", "")
		d.AfterAny = &task.Dependencies{Tasks: ids}
		return d
	}
	inGroup, afterGroup := after(201), task.Defaults("p", "rsync:/p/run.sh", "")
	inGroup.Group, afterGroup.After = "g", &task.Dependencies{Group: "g"}
	for want, c := range map[string]struct {
		opened []task.Properties // from task 201 on
		behind bool              // more tasks wait for task 1 than the doctor samples, and the last of them waits for task 201
	}{
		"": {opened: []task.Properties{after(1), after(201)}},
		"task 201 waits for task 202 waits for task 201": {opened: []task.Properties{after(202), after(1, 201)}},
		"task 201 waits for task 203 waits for task 202 waits for task 201": {
			opened: []task.Properties{after(203), after(201), after(202)}, behind: true,
		},
		"campaign g waits for task 201 waits for campaign g": {opened: []task.Properties{afterGroup, inGroup}},
	} {
		t.Run(want, func(t *testing.T) {
			a, _ := onEmbedded(t)
			s := a.redis()
			open := func(all ...task.Properties) {
				t.Helper()
				expect.Result(s.Open(t.Context(), "m", all...)).OK(t)
			}
			var before []task.Properties
			for range 200 {
				d := task.Defaults("p", "rsync:/p/run.sh", "")
				if c.behind && len(before) > 0 {
					d = after(1, 201)
				}
				before = append(before, d)
			}
			open(before...)
			open(c.opened...)
			for n := 1; n > 0; {
				var err error
				n, err = dependencies.Of(s).LinkWaiting(t.Context())
				expect.NoError(t, err)
			}
			got := ""
			for _, d := range expect.Result(a.Diagnose(t.Context())).Value(t) {
				if d.Code == FactTaskCycle || d.Code == FactCampaignCycle {
					expect.Equal(t, d.Code == FactCampaignCycle, strings.Contains(want, "campaign"), d.Code)
					_, got, _ = strings.Cut(d.Text, "never run: ")
				}
			}
			expect.Equal(t, got, want)
		})
	}
}

// However many tasks wait, and whatever other programs have written, the doctor reads a bounded number of tasks and dependencies.
func TestWaitsAreBounded(t *testing.T) {
	a, _ := onEmbedded(t)
	s := a.redis()
	const n = 2500
	var all []task.Properties
	for i := range int64(n) {
		d := task.Defaults("p", "rsync:/p/run.sh", "")
		d.AfterAny = &task.Dependencies{Tasks: []int64{i + 2, i + 3}} // the last ones name tasks that do not exist
		all = append(all, d)
	}
	expect.Result(s.Open(t.Context(), "m", all...)).OK(t)
	first := expect.Result(dependencies.FirstWaiting(t.Context(), s, sampledFirst)).Value(t)
	expect.MustLen(t, first, sampledFirst, "first tasks")
	waits := expect.Result(waitsOf(t.Context(), s, first, nil)).Value(t)
	expect.Compare(t, len(waits), ">", sampledFirst)
	expect.Compare(t, len(waits), "<=", sampledFirst+followedSteps*followedTasks)
	expect.Len(t, expect.Result(dependencies.WaitingOf(t.Context(), s, first, 20)).Value(t), 10, "tasks with 20 dependencies")
	odd := []dependencies.AwaitedGroup{{Group: "g", Dependents: []int64{-1, 0, 99999}}}
	expect.Equal(t, fmt.Sprint(expect.Result(waitsOf(t.Context(), s, nil, odd)).Value(t)), "map[]", "odd dependents")
	place := s.Keys.OpenSet(task.WaitingPlace)
	s.Conn.Redis.Del(t.Context(), place)
	s.Conn.Redis.Set(t.Context(), place, "text", 0)
	expect.Len(t, expect.Result(dependencies.FirstWaiting(t.Context(), s, sampledFirst)).Value(t), 0, "a wrong type")
}
