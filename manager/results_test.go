package manager_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
)

// roundHistories are what a round may have left.
var roundHistories = []tdf.Hash{
	{},
	{"worker": "w", "running": "2"},
	{"worker": "w", "running": "2", "lost": "5"},
	{"worker": "w", "running": "2", "timeout": "5", "output": "so far"},
	{"worker": "w", "claim": "c", "running": "2", "executed": "4", "failure": "5", "output": "out", "error": "failed", "result": "{}"},
	{"error": "rejected"},
}

// everyHistory returns tasks in all states, after each history of up to three rounds.
func everyHistory() []tdf.Hash {
	tasks := []tdf.Hash{{"program": "p", "source": source, "round": "0"}}
	var all []tdf.Hash
	for round := range 3 {
		var longer []tdf.Hash
		for _, h := range tasks {
			for _, history := range roundHistories {
				next := maps.Clone(h)
				next["round"] = fmt.Sprint(round)
				for name, value := range history {
					next[tdf.RoundField(round, name)] = value
				}
				longer = append(longer, next)
			}
		}
		tasks = longer
		for _, h := range tasks {
			for _, state := range tdf.States {
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
		return []string{string(tdf.Expired), tdf.Cancelled}
	case tdf.Archived:
		return []string{"", string(tdf.Succeeded), string(tdf.Failed), string(tdf.TimedOut), string(tdf.Expired), tdf.Cancelled}
	default:
		return []string{""}
	}
}

// What a task printed can be asked for wherever it was read with that, and is what the whole task says.
func TestResultsHaveWhatIsAskedFor(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg, manager.WithLog(silent))
	all, ids := everyHistory(), []int64{}
	_, err := client(t, cfg).Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, h := range all {
			ids = append(ids, int64(i+1))
			p.HSet(t.Context(), fmt.Sprintf("%s:task:%d", cfg.Namespace, i+1), map[string]string(h))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for task, err := range m.Results(t.Context(), manager.Query{IDs: ids}, true) {
		if err != nil {
			t.Fatal(err)
		}
		read++
		h := all[task.ID-1]
		want, _ := tdf.ParseTask(task.ID, h)
		got, err := lastTexts(task)
		if wanted := [3]string{want.LastOutput(), want.LastError(), want.LastResult()}; err != nil || got != wanted {
			t.Fatalf("%v: %q, %v; want %q", h, got, err, wanted)
		}
	}
	if read != len(all) {
		t.Errorf("%d tasks of %d were read", read, len(all))
	}
}

// lastTexts returns what the last run left, and as an error what asking for it panics with.
func lastTexts(t *tdf.Task) (texts [3]string, err error) {
	defer func() {
		if e, panicked := recover().(error); panicked {
			err = e
		}
	}()
	return [3]string{t.LastOutput(), t.LastError(), t.LastResult()}, nil
}
