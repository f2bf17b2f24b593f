package rules

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestStoredProgram(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for source, want := range map[string]string{
		"redis:" + sum:                  sum,
		"redis:" + sum + "x":            "",
		"redis:":                        "",
		"redis":                         "",
		"":                              "",
		"rediss:" + sum:                 "",
		"https://example.org/run.sh":    "",
		"rsync:redis:/" + sum + ".zip":  "",
		"redis:" + strings.ToUpper(sum): sum,
	} {
		expect.Equal(t, task.StoredProgram(source), want, source, "names")
	}
	one := taskIn(task.Open)
	m, err := Change(one, task.Changes{Source: new("redis:" + sum)})
	expect.NoError(t, err)
	expect.Equal(t, m.NamedProgram(), sum)
	m, err = Change(one, task.Changes{Input: new("redis:" + sum)})
	expect.NoError(t, err)
	expect.Equal(t, m.NamedProgram(), "")
}

// Only a reopened task takes its key, and only a removed one gives it back.
func TestMovesWithUniqueKeys(t *testing.T) {
	unique := func(s task.State) *task.Task {
		one := taskIn(s)
		one.Unique = "k"
		return one
	}
	for _, s := range task.States {
		reopen, err := Reopen(unique(s))
		if s.Finished() {
			expect.NoError(t, err, s)
			expect.Equal(t, reopen.Unique, "k", s)
		}
		remove, err := Remove(unique(s))
		if s.Finished() {
			expect.NoError(t, err, s)
			expect.Equal(t, remove.Unique, "k", s)
		}
	}
	expect.Equal(t, expect.Result(TimeOut(unique(task.Running))).Value(t).Unique, "")
}

// A task that waits has a place of its key. A change returns it to its queue, and the next claim makes it wait again
// if the limit has no room.
func TestPlaceOfWaitingTask(t *testing.T) {
	waiting := func() *task.Task {
		d := task.Defaults("p", "rsync:/p/run.sh", "x")
		d.LimitKey, d.Queue, d.Priority = "db", "a", 5
		return &task.Task{Properties: d, State: task.Open, PlacedIn: task.LimitReason("db") + "\npriority=5;queue=a"}
	}
	x := waiting()
	expect.True(t, x.WaitsForLimit(), x.OpenPlace())
	expect.Equal(t, x.OpenPlace(), x.PlacedIn)
	expect.True(t, x.IsHeld(), x.OpenPlace())
	for name, c := range map[string]struct {
		c     task.Changes
		place string
	}{
		"queue":           {task.Changes{Queue: new("b")}, "priority=5;queue=b"},
		"priority":        {task.Changes{Priority: new(-1)}, "priority=-1;queue=a"},
		"priority 0":      {task.Changes{Priority: new(0)}, "queue=a"},
		"key":             {task.Changes{LimitKey: new("other")}, "priority=5;queue=a"},
		"no key":          {task.Changes{LimitKey: new("")}, "priority=5;queue=a"},
		"start_after":     {task.Changes{StartAfter: new(task.Time(9e9).Std())}, "priority=5;queue=a"},
		"key and queue":   {task.Changes{LimitKey: new("other"), Queue: new("b")}, "priority=5;queue=b"},
		"no place at all": {task.Changes{LimitKey: new(""), Queue: new(""), Priority: new(0)}, "-"},
	} {
		m, err := Change(waiting(), c.c)
		got := ""
		for _, f := range m.Set {
			if f.Name == task.FieldPlace {
				got = f.Value
			}
		}
		for _, name := range m.Clear {
			if name == task.FieldPlace {
				got = "-"
			}
		}
		expect.NoError(t, err, name, c.place)
		expect.Equal(t, got, c.place, name)
	}
	plain := task.Defaults("p", "rsync:/p/run.sh", "x")
	plain.LimitKey = "db"
	expect.Equal(t, plain.Place(), class.Plain, "a task with only a limit key has the place … so workers of older releases would claim it")
	for place, held := range map[string]bool{
		"": false, "waiting": true, "limit=a\n": true, "paused=a;b\npriority=-5": true, "group=g;queue=a": false,
		"priority=5": false, "limit=a": false,
		"handler=limit=x": false,
	} {
		expect.Equal(t, (&task.Task{State: task.Open, PlacedIn: place}).IsHeld(), held, "the place", place, "is held", !held)
	}
	for _, place := range []string{"limit=\n", "limit=other\n", "paused=g\n", "paused=\n"} {
		x := waiting()
		x.PlacedIn, x.LimitKey = place, ""
		expect.Equal(t, x.OpenPlace(), "priority=5;queue=a", "held for a reason that is not its own:", place)
	}
	if x := waiting(); true {
		x.LimitKey = ""
		expect.Equal(t, x.OpenPlace(), "priority=5;queue=a", "a waiting task without a key has the place")
	}
}

// Each Move that leaves or enters the state running names the limit key. No other Move of a table does.
func TestMovesNameTheLimitKey(t *testing.T) {
	for _, tr := range Transitions {
		for _, from := range tr.From {
			x := task.Task{Properties: task.Defaults("p", "", ""), State: from}
			x.LimitKey = "db"
			m, err := move(&x, tr.Verb, tr.To)
			want := from == task.Running || tr.To == task.Running
			expect.NoError(t, err, from)
			expect.Equal(t, m.Limit == "db", want, from)
		}
	}
	x := &task.Task{Properties: task.Defaults("p", "", ""), State: task.Executed}
	x.LimitKey = "db"
	if m, _ := lose(x, task.Executed); m.Limit != "db" {
		t.Error("a lost task that was found executed keeps its place")
	}
}
