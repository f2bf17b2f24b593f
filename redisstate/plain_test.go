package redisstate_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// The changes of a task between two calls. The value "-" removes a property.
var special = []map[string]string{
	{},
	{"group": "g"},
	{"group": "-"},
	{"limit_key": "k"},
	{"state": "running"},
	{"state": "-"},
	{"round": "1"},
	{"round": ""},
	{"round": "-"},
	{"round": "01"},
	{"start_after": "5"},
	{"start_after": "-5"},
	{"start_after": "9000000000"},
	{"start_after": "9000000000.5"},
	{"start_after": "soon"},
	{"end_before": "9000000000"},
	{"end_before": "1000000000"},
	{"end_before": "nan"},
	{"end_before": "Infinity"},
	{"end_before": "-"},
	{"timeout": "7"},
	{"timeout": "-7"},
	{"timeout": "1e3"},
	{"timeout": "-"},
	{"end_before": "9000000000", "timeout": "7.5"},
	{"not_on": "w"},
	{"not_on": "other"},
	{"log": "-"},
	{"log": ""},
	{"log": strings.Repeat("line\n", 500)},
	{"0:running": "-"},
	{"0:running": "9000000000.000000"},
	{"0:running": "9000000000"},
	{"0:running": "then"},
	{"0:started": "9000000000.000000"},
	{"0:started": "then"},
	{"0:claim": "other"},
	{"0:claim": "-"},
	{"0:executed": "1000000000.000000"},
	{"0:succeeded": "9000000000.000000"},
	{"0:succeeded": "-"},
	{"links": "1"},
	{"place": "queue=q"},
	{"revision": "3"},
}

// The fast paths do the same as the other code of their scripts: after each call, Redis has the same values, whatever
// another program has changed before the call.
func TestFastPathsDoAsTheOtherCode(t *testing.T) {
	withBudget(t, "60")
	r := expect.Result(embedded.Start("127.0.0.1:0", embedded.Scripts("test", lua.Sums()...))).Value(t)
	t.Cleanup(r.Close)
	fast := lives(t, redistest.Shared(t))
	compare(t, fast, lives(t, r.Addr()), "on the embedded Redis")
	for script, guard := range map[*lua.Script]string{
		lua.Open: "if ARGV[6] ~= '' and", lua.Move: "if ARGV[6] ~= '' then",
	} {
		source := strings.Replace(script.Source(), "BUDGET = 0.003", "BUDGET = 60", 1)
		other := strings.Replace(source, guard, strings.Replace(guard, "if ", "if false and ", 1), 1)
		expect.MustTrue(t, other != source, script.Name, "has another fast path")
		script.Load(func() string { return other })
	}
	compare(t, fast, lives(t, redistest.Shared(t)), "without the fast paths")
}

func compare(t *testing.T, want, got map[string]string, how string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		expect.Equal(t, got[name], want[name], name, how)
	}
}

// lives returns what a Redis holds after the lives of tasks, with each change before each step.
func lives(t *testing.T, addr string) map[string]string {
	t.Helper()
	ns := redistest.Namespace(t)
	after := map[string]string{}
	for i, values := range special {
		for _, step := range []string{"open", "claim", "report", "settle", "archive"} {
			if step != "open" || i == 0 || values["group"] == "g" || values["limit_key"] == "k" { // before they are open, tasks have only other groups and keys
				after[fmt.Sprint(i, " ", values, " before ", step)] = lifeWith(t, addr, ns, step, values)
			}
		}
	}
	return after
}

// lifeWith takes three tasks through their lives, and changes the second of them before a step. It returns what Redis
// holds after the step and at the end.
func lifeWith(t *testing.T, addr, ns, changed string, values map[string]string) string {
	t.Helper()
	ctx := t.Context()
	s := expect.Result(redisstate.Connect(ctx, conntest.Config(t, addr), ns, quiet)).Value(t)
	defer s.Close()
	defer s.Conn.Redis.FlushDB(ctx)
	var ids []int64
	var worlds []string
	step := func(name string, do func()) {
		if name == changed && len(ids) > 0 {
			for field, value := range values {
				if value == "-" {
					s.Conn.Redis.HDel(ctx, s.Keys.Task(ids[1]), field)
				} else {
					s.Conn.Redis.HSet(ctx, s.Keys.Task(ids[1]), field, value)
				}
			}
		}
		do()
		if name == changed || name == "archive" {
			worlds = append(worlds, worldOf(t, s))
		}
	}
	var claims []redisstate.Claim
	step("open", func() {
		if changed == "open" {
			must(t, s.Limits.SetLimit(ctx, "k", task.Limit{AtMost: 2})) // the third task of the key waits
			d := define("x")
			d.Group, d.LimitKey = values["group"], values["limit_key"]
			ids = mustOpen(t, s, d, d, d)
			return
		}
		ids = mustOpen(t, s, define("a"), define("b"), define("c"))
	})
	step("claim", func() {
		c := expect.Result(s.Claim(ctx, redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60})).Value(t)
		claims = c.Claims
		worlds = append(worlds, fmt.Sprint(len(claims), c.More, c.Unwanted, c.Taken, c.Next == task.Never))
	})
	step("report", func() {
		var results []rules.Move
		for _, c := range claims {
			results = append(results, expect.Result(rules.Execute(c.Task, c.ID, rules.Result{
				Output: fmt.Sprint(c.Task.ID), Exit: "0", Started: c.Task.Current().Entered[task.Running], Seconds: 1000,
			})).Value(t))
		}
		outcomes, err := s.Execute(ctx, "w", results...)
		worlds = append(worlds, fmt.Sprint(outcomes, err))
	})
	step("settle", func() {
		worlds = append(worlds, fmt.Sprint(settleMany(t, s)))
	})
	step("archive", func() {
		var units []redisstate.Unit
		for _, id := range ids {
			x := expect.Result(s.Read(ctx, []int64{id}, redisstate.Want{Fields: redisstate.Whole})).Value(t)[0]
			if x.Task == nil {
				continue
			}
			x.Task.State, x.Task.Round = task.Succeeded, 0 // as it was read before the change
			if m, err := rules.Archive(x.Task); err == nil {
				units = append(units, redisstate.Unit{Moves: []rules.Move{m}})
			}
		}
		outcomes, err := s.Apply(ctx, "manager", units...)
		worlds = append(worlds, fmt.Sprint(outcomes, err))
	})
	return strings.Join(worlds, "\n\n")
}

var decimal = regexp.MustCompile(`\d{10}(\.\d+)?`)

// worldOf returns what Redis holds. The texts of the present, and of claims, are the same in all namespaces.
func worldOf(t *testing.T, s *redisstate.Store) string {
	t.Helper()
	now := float64(clockOf(t, s))
	var lines []string
	for name, text := range readAll(t, s) {
		lines = append(lines, name+": "+text)
	}
	slices.Sort(lines)
	text := strings.ReplaceAll(strings.Join(lines, "\n"), s.Keys.Namespace(), "ns")
	text = claimIDs.ReplaceAllString(text, "claim.")
	return decimal.ReplaceAllStringFunc(text, func(number string) string {
		if at, _ := strconv.ParseFloat(number, 64); math.Abs(at-now) < 3600 {
			return "T"
		}
		return number
	})
}

// A new task has all of its properties, also those that Go does not send because most tasks have the same value.
func TestNewTasksHaveAllProperties(t *testing.T) {
	s := newStore(t)
	for _, change := range []func(d *task.Properties){
		func(*task.Properties) {},
		func(d *task.Properties) { d.MaxFails, d.EndBefore = 2, 9e9 },
		func(d *task.Properties) { d.Group, d.Unique = "g", "u" },
	} {
		d := task.Defaults("p", "rsync:/p/run.sh", "1")
		change(&d)
		id := expect.Result(s.Open(t.Context(), "m", d)).Value(t)[0]
		stored := expect.Result(s.Conn.Redis.HGetAll(t.Context(), s.Keys.Task(id)).Result()).Value(t)
		for _, f := range d.OpenFields(s.Keys.Namespace()) {
			expect.Equal(t, stored[f.Name], f.Value, f.Name)
		}
	}
}
