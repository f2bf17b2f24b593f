package tdf

import (
	"math"
	"strings"
	"testing"
)

func TestLimitText(t *testing.T) {
	for text, want := range map[string]Limit{
		"at_most=4":                    {AtMost: 4},
		"at_most=0":                    {},
		"rate=10/1.000000":             {AtMost: AnyNumber, Starts: 10, Per: 1},
		"at_most=3 rate=10000/0.00100": {AtMost: 3, Starts: 10_000, Per: 0.001},
		"rate=1/10000000.000000":       {AtMost: AnyNumber, Starts: 1, Per: 1e7},
	} {
		got, ok := ParseLimit(text)
		if again, _ := ParseLimit(got.String()); !ok || got != want || again != want {
			t.Errorf("%q: %+v, %v, and again %+v", text, got, ok, again)
		}
	}
	for _, text := range []string{
		"", "x", "at_most=", "at_most=-1", "at_most=1000001", "at_most=1e3", "rate=10", "rate=10/", "rate=0/1", "rate=-1/1", "rate=10001/1", "rate=1/inf",
		"rate=1/NaN", "rate=1/0", "rate=1/0.0001", "rate=1/10000001", "rate=x/1", "at_most=1 rate=1/x",
	} {
		if got, ok := ParseLimit(text); ok {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
	for l, want := range map[Limit]int{{AtMost: 1}: 0, {Starts: 1, Per: 0.001}: 61, {Starts: 1, Per: 60}: 120} {
		if got := l.KeepStarts(); got != want {
			t.Errorf("the starts of %+v stay for %d s, want %d", l, got, want)
		}
	}
}

func TestLimitCheck(t *testing.T) {
	for _, l := range []Limit{
		{AtMost: -1},
		{AtMost: MaxAtMost + 1},
		{AtMost: AnyNumber},
		{Starts: -1, Per: 1},
		{Starts: 1},
		{Starts: 1, Per: Seconds(math.NaN())},
		{Starts: 1, Per: Forever},
		{Starts: 1, Per: -1},
		{Starts: MaxStarts + 1, Per: 1},
	} {
		if l.Check() == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Limit{
		"10/1s": {Starts: 10, Per: 1}, "10/s": {Starts: 10, Per: 1}, "600/m": {Starts: 600, Per: 60}, "5/1.5s": {Starts: 5, Per: 1.5},
		"1/2h": {Starts: 1, Per: 7200}, "1/d": {Starts: 1, Per: 86400}, "3/20": {Starts: 3, Per: 20}, "1/0.0015s": {Starts: 1, Per: 0.0015},
	} {
		if n, per, err := ParseRate(text); n != want.Starts || per != want.Per || err != nil {
			t.Errorf("%q: %d, %v, %v", text, n, per, err)
		}
	}
	for _, text := range []string{
		"", "10", "/", "10/", "/s", "10/x", "0/s", "-1/s", "1.5/s", "10/-1s", "10/infs", "10/NaN", "10/0s", "10001/s", "1/1000d", "1 /s", "1/ 1s", "1/s/s",
	} {
		if n, per, err := ParseRate(text); err == nil {
			t.Errorf("%q was read as %d starts in %v s", text, n, per)
		}
	}
}

// Return returns as many tasks as may start, and no more than wait.
func TestReturn(t *testing.T) {
	const now = Time(1000)
	rate := func(atMost int) Limit { return Limit{AtMost: atMost, Starts: 10, Per: 2} }
	for name, c := range map[string]struct {
		u    LimitUse
		n    int
		next Time
	}{
		"room":                          {LimitUse{Limit: Limit{AtMost: 5}, Running: 2, Waiting: 9}, 3, 1010},
		"fewer wait":                    {LimitUse{Limit: Limit{AtMost: 5}, Running: 2, Waiting: 1}, 1, 1010},
		"full":                          {LimitUse{Limit: Limit{AtMost: 5}, Running: 5, Waiting: 9}, 0, 1010},
		"lowered":                       {LimitUse{Limit: Limit{AtMost: 1}, Running: 5, Waiting: 9}, 0, 1010},
		"nothing may run":               {LimitUse{Limit: Limit{}, Waiting: 9}, 0, 1010},
		"returned before":               {LimitUse{Limit: Limit{AtMost: 5}, Running: 2, Returned: 2, Waiting: 9}, 1, 1010},
		"more returned than room":       {LimitUse{Limit: Limit{AtMost: 5}, Running: 2, Returned: 7, Waiting: 9}, 0, 1010},
		"returned, but not claimed":     {LimitUse{Limit: Limit{AtMost: 5}, Running: 2, Unclaimed: 48, Waiting: 99}, 3, 1010},
		"not claimed, and full":         {LimitUse{Limit: Limit{AtMost: 5}, Running: 5, Unclaimed: 48, Waiting: 99}, 0, 1010},
		"the rate has room":             {LimitUse{Limit: rate(AnyNumber), Free: 4, NextStart: 1001.5, Waiting: 99}, 4, 1001.5},
		"the rate has none":             {LimitUse{Limit: rate(AnyNumber), NextStart: 1001.5, Waiting: 99}, 0, 1001.5},
		"the next start is far away":    {LimitUse{Limit: rate(AnyNumber), NextStart: 5000, Waiting: 99}, 0, 1010},
		"the next start is past":        {LimitUse{Limit: rate(AnyNumber), NextStart: 5, Waiting: 99}, 0, 1000},
		"full, and the rate has room":   {LimitUse{Limit: rate(3), Running: 3, Free: 9, NextStart: 1001, Waiting: 99}, 0, 1010},
		"room, and the rate has less":   {LimitUse{Limit: rate(3), Free: 2, NextStart: 1001, Waiting: 99}, 2, 1001},
		"room, and the rate has more":   {LimitUse{Limit: rate(3), Running: 1, Free: 9, NextStart: 1001, Waiting: 99}, 2, 1001},
		"nobody waits":                  {LimitUse{Limit: Limit{AtMost: 5}}, 0, 1010},
		"the limit is gone":             {LimitUse{Waiting: 99, Running: 7}, 99, 1010},
		"the limit is gone, and others": {LimitUse{Waiting: 99, Returned: 50}, 99, 1010},
	} {
		c.u.Now, c.u.Limited = now, !strings.HasPrefix(name, "the limit is gone")
		if n, next := c.u.Return(); n != c.n || next != c.next {
			t.Errorf("%s: %d at %v, want %d at %v", name, n, next, c.n, c.next)
		}
	}
}

// Tasks of partitions that may have no workers return beside the others, as many as are unclaimed. They do so in order, and only
// until enough other tasks are found.
func TestChoose(t *testing.T) {
	const full = manyUnclaimed
	for name, c := range map[string]struct {
		waiting   string // the queue of each task; p is paused
		n         int
		unserved  string // the queues that may have no workers
		unclaimed int

		tasks, passed, freed string
		more                 string // "blocked" or "more", if five tasks wait
	}{
		"room":                          {"aab", 2, "", 0, "aa", "", "", ""},
		"no room":                       {"aab", 0, "", 0, "", "", "", ""},
		"fewer wait":                    {"aab", 9, "", 0, "aab", "", "", "more"},
		"no workers":                    {"aabba", 1, "a", 2, "b", "aa", "", ""},
		"no workers, and no room":       {"aabba", 0, "a", 2, "", "", "", ""},
		"not more than are unclaimed":   {"aaab", 4, "a", 2, "", "aa", "", "blocked"},
		"no workers, among others":      {"abab", 2, "a", 2, "bb", "aa", "", ""},
		"behind a blocked task":         {"abab", 2, "a", 1, "b", "a", "", "blocked"},
		"two queues without workers":    {"abcc", 1, "ab", 4, "c", "ab", "", ""},
		"many are unclaimed":            {"aaab", 1, "a", full, "b", "", "aaa", ""},
		"paused":                        {"papp", 1, "", 0, "a", "", "ppp", ""},
		"paused, behind a blocked task": {"app", 1, "a", 0, "", "", "pp", "blocked"},
		"paused, without workers":       {"pap", 1, "p", 1, "a", "", "pp", ""},
		"the limit is gone":             {"aba", 3, "a", 1, "", "", "aba", "more"},
	} {
		u := LimitUse{Limited: name != "the limit is gone", Waiting: 5, Unclaimed: c.unclaimed, Unserved: strings.Split(c.unserved, "")}
		var waiting []*Task
		for i, queue := range u.Unserved {
			u.Unserved[i] = "queue=" + queue
		}
		for _, queue := range c.waiting {
			d := Defaults("p", "rsync:/p/run.sh", "")
			d.Queue, d.Priority = string(queue), len(waiting)
			waiting = append(waiting, &Task{Properties: d, State: Open})
		}
		got := u.Choose(waiting, c.n, Paused{{Queue: "p"}})
		queues := func(tasks []*Task) (all string) {
			for _, x := range tasks {
				all += x.Queue
			}
			return all
		}
		if queues(got.Tasks) != c.tasks || queues(got.Passed) != c.passed || queues(got.Freed) != c.freed ||
			got.Blocked != (c.more == "blocked") || got.More != (c.more == "more") {
			t.Errorf("%s: tasks %q, passed %q, freed %q, blocked %v, more %v",
				name, queues(got.Tasks), queues(got.Passed), queues(got.Freed), got.Blocked, got.More)
		}
	}
	for _, c := range []struct{ n, unclaimed, waiting, want int }{{0, 9, 99, 0}, {1, 9, 99, 10}, {5, 9, 7, 7}, {5, 0, 7, 5}} {
		u := LimitUse{Unclaimed: c.unclaimed, Waiting: c.waiting}
		if got := u.ToRead(c.n); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A task that waits has a place of its key. A change returns it to its queue, and the next claim makes it wait again
// if the limit has no room.
func TestPlaceOfWaitingTask(t *testing.T) {
	waiting := func() *Task {
		d := Defaults("p", "rsync:/p/run.sh", "x")
		d.LimitKey, d.Queue, d.Priority = "db", "a", 5
		return &Task{Properties: d, State: Open, PlacedIn: LimitPlace("db", 5)}
	}
	if x := waiting(); !x.WaitsForLimit() || x.OpenPlace() != "priority=5;limit=db" || !IsHeld(x.PlacedIn) {
		t.Errorf("the place is %q", x.OpenPlace())
	}
	for name, c := range map[string]struct {
		c     Changes
		place string
	}{
		"queue":           {Changes{Queue: new("b")}, "priority=5;queue=b"},
		"priority":        {Changes{Priority: new(-1)}, "priority=-1;queue=a"},
		"priority 0":      {Changes{Priority: new(0)}, "queue=a"},
		"key":             {Changes{LimitKey: new("other")}, "priority=5;queue=a"},
		"no key":          {Changes{LimitKey: new("")}, "priority=5;queue=a"},
		"start_after":     {Changes{StartAfter: new(Time(9e9))}, "priority=5;queue=a"},
		"key and queue":   {Changes{LimitKey: new("other"), Queue: new("b")}, "priority=5;queue=b"},
		"no place at all": {Changes{LimitKey: new(""), Queue: new(""), Priority: new(0)}, "-"},
	} {
		m, err := waiting().Change(c.c)
		got := ""
		for _, f := range m.Set {
			if f.Name == FieldPlace {
				got = f.Value
			}
		}
		for _, name := range m.Clear {
			if name == FieldPlace {
				got = "-"
			}
		}
		if err != nil || got != c.place {
			t.Errorf("%s: the new place is %q, want %q, %v", name, got, c.place, err)
		}
	}
	plain := Defaults("p", "rsync:/p/run.sh", "x")
	plain.LimitKey = "db"
	if plain.Place() != DefaultPartition {
		t.Errorf("a task with only a limit key has the place %q, so workers of older releases would claim it", plain.Place())
	}
	for place, held := range map[string]bool{
		"": false, "waiting": true, "limit=": true, "limit=a;b": true, "priority=5;limit=a": true, "priority=5": false, "priority=5;queue=a": false,
		"queue=a": false, "handler=limit=x": false, "priority=5;handler=limit=a": false,
	} {
		if IsHeld(place) != held {
			t.Errorf("the place %q is held: %v", place, !held)
		}
	}
	if x := waiting(); true {
		x.LimitKey = ""
		if x.OpenPlace() != "priority=5;queue=a" {
			t.Errorf("a waiting task without a key has the place %q", x.OpenPlace())
		}
	}
}

// Each Move that leaves or enters the state running names the limit key. No other Move of a table does.
func TestMovesNameTheLimitKey(t *testing.T) {
	for _, tr := range Transitions {
		for _, from := range tr.From {
			x := Task{Properties: Defaults("p", "", ""), State: from}
			x.LimitKey = "db"
			m, err := x.move(tr.Verb, tr.To)
			if want := from == Running || tr.To == Running; err != nil || (m.Limit == "db") != want {
				t.Errorf("%s from %s to %s: limit %q, %v", tr.Verb, from, tr.To, m.Limit, err)
			}
		}
	}
	x := &Task{Properties: Defaults("p", "", ""), State: Executed}
	x.LimitKey = "db"
	if m, _ := x.lose(Executed); m.Limit != "db" {
		t.Error("a lost task that was found executed keeps its place")
	}
}
