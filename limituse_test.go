package tdf

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

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
		"the rate has room":             {LimitUse{Limit: rate(0), Free: 4, NextStart: 1001.5, Waiting: 99}, 4, 1001.5},
		"the rate has none":             {LimitUse{Limit: rate(0), NextStart: 1001.5, Waiting: 99}, 0, 1001.5},
		"the next start is far away":    {LimitUse{Limit: rate(0), NextStart: 5000, Waiting: 99}, 0, 1010},
		"the next start is past":        {LimitUse{Limit: rate(0), NextStart: 5, Waiting: 99}, 0, 1000},
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

// Tasks of requirements that may have no workers return beside the others, as many as are unclaimed. They do so in order, and only
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
		expect.Equal(t, u.ToRead(c.n), c.want)
	}
}
