package manager_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// roundHistories are the possible properties of a round in Redis.
var roundHistories = []task.Hash{
	{},
	{"worker": "w", "running": "2"},
	{"worker": "w", "running": "2", "lost": "5"},
	{"worker": "w", "running": "2", "timeout": "5", "output": "so far"},
	{"worker": "w", "claim": "c", "running": "2", "executed": "4", "failure": "5", "output": "out", "error": "failed", "result": "{}"},
	{"error": "rejected"},
}

// everyHistory returns tasks in all states, with each combination of histories for up to three rounds.
func everyHistory() []task.Hash {
	tasks := []task.Hash{{"program": "p", "source": source, "round": "0"}}
	var all []task.Hash
	for round := range 3 {
		var longer []task.Hash
		for _, h := range tasks {
			for _, history := range roundHistories {
				next := maps.Clone(h)
				next["round"] = fmt.Sprint(round)
				for name, value := range history {
					next[task.RoundField(round, name)] = value
				}
				longer = append(longer, next)
			}
		}
		tasks = longer
		for _, h := range tasks {
			for _, state := range task.States {
				for _, outcome := range outcomesOf(state) {
					next := maps.Clone(h)
					next["state"], next["outcome"] = string(state), outcome
					all = append(all, next)
				}
			}
		}
	}
	return all
}

func outcomesOf(s tdf.State) []string {
	switch s {
	case tdf.Expired:
		return []string{string(tdf.Expired), task.Cancelled}
	case tdf.Archived:
		return []string{"", string(tdf.Succeeded), string(tdf.Failed), string(tdf.TimedOut), string(tdf.Expired), task.Cancelled}
	default:
		return []string{""}
	}
}

// If List returns a task, the texts of its last run are the same as in the whole task.
func TestListedTasksHaveTheirLastTexts(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg, testspace.Log(silent))
	all, ids := everyHistory(), []int64{}
	_, err := client(t, cfg).Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, h := range all {
			ids = append(ids, int64(i+1))
			p.HSet(t.Context(), fmt.Sprintf("%s:task:%d", cfg.Namespace, i+1), map[string]string(h))
		}
		return nil
	})
	expect.NoError(t, err)
	read := 0
	for one, err := range m.List(t.Context(), manager.Query{IDs: ids, Read: manager.ReadOutput}) {
		expect.NoError(t, err)
		read++
		h := all[one.ID-1]
		want, _ := task.ParseTask(one.ID, h)
		expect.MustEqual(t, [3]string{one.Output(), one.Stderr(), one.Result()},
			[3]string{want.LastOutput(), want.LastError(), want.LastResult()})
	}
	expect.Equal(t, read, len(all), "tasks of … were read")
}

func TestListByID(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	tasks := map[int64]task.Hash{}
	for i := range 1500 {
		h := task.Hash{"state": "archived", "round": "0", "program": "p", "source": source, "outcome": "succeeded", "0:worker": "w", "0:exit": "0"}
		h["group"], h["0:output"], h["0:result"] = []string{"a", "b"}[i%2], fmt.Sprint("out ", i), fmt.Sprint(i)
		h["0:archived"] = fmt.Sprint(2_000_000_000 - i*i%977) // so that the order of archiving differs from the order of ids
		tasks[int64(i+1)] = h
	}
	testspace.PutTasks(t, connect(t, cfg), tasks)
	for _, c := range []struct {
		q           manager.Query
		first, many int
		step        int64
	}{
		{manager.Query{}, 1, 1500, 1},
		{manager.Query{Group: "b"}, 2, 750, 2},
		{manager.Query{Group: "b", Output: "out 1"}, 2, 0, 0},
		{manager.Query{IDs: []int64{7, 5, 3}}, 3, 3, 2},
		{manager.Query{States: []tdf.State{tdf.Open}}, 0, 0, 0},
	} {
		n, next := 0, int64(c.first)
		for one, err := range m.List(t.Context(), byID(c.q, manager.ReadOutput)) {
			expect.NoError(t, err)
			if c.step > 0 {
				expect.MustEqual(t, one.ID, next)
			}
			r := one.LastRun()
			expect.Equal(t, r.Output, fmt.Sprint("out ", one.ID-1), "task", one.ID)
			expect.Equal(t, r.Result, fmt.Sprint(one.ID-1), "task", one.ID)
			n, next = n+1, next+c.step
		}
		if c.step > 0 {
			expect.Equal(t, n, c.many)
		}
		if c.q.States != nil {
			expect.Compare(t, n, "<=", 0, c.many)
		}
		if c.q.Output != "" {
			expect.NotEqual(t, n, 0, c.many)
		}
	}
	for one, err := range m.List(t.Context(), byID(manager.Query{}, manager.ReadResult)) {
		expect.NoError(t, err)
		expect.Equal(t, one.LastRun().Output, "")
		expect.NotEqual(t, one.Result(), "")
		break
	}
	for _, err := range m.List(t.Context(), byID(manager.Query{Exit: "x"}, manager.ReadResult)) {
		expect.Fails(t, err, "", "an invalid query returned no error")
	}
}

func byID(q manager.Query, read manager.Read) manager.Query {
	q.Order, q.Read = manager.ByID, read
	return q
}
