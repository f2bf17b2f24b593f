package redisstate

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/luacost"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// The table in docs/performance.md says how many instructions each script of a plain task needs. The test repeats the
// calls, and fails if a number differs by more than 5 %. It then prints the new row. With TDF_COST, it prints the
// functions that need the most.
func TestCostOfPlainTasks(t *testing.T) {
	t.Parallel()
	addr := redistest.Shared(t)
	s := connect(t, addr, redistest.Namespace(t))
	counted := map[string]*lua.Script{}
	var texts []string
	for _, script := range []*lua.Script{lua.Open, lua.Claim, lua.Move, lua.Settle} {
		counted[s.Script(script).Hash()] = script
		texts = append(texts, textOf(s, script))
	}
	x := expect.Result(luacost.New(addr, redistest.Database(t), texts...)).Value(t)
	defer x.Close()
	var last *luacost.Counts
	var script *lua.Script
	x.Counted = func(sha1 string, c *luacost.Counts) { last, script = c, counted[sha1] }
	s.Redis.AddHook(x)

	page := expect.Result(os.ReadFile("../docs/performance.md")).Value(t)
	for _, n := range []int{1, 100} {
		for _, step := range plainSteps(t, s, n) {
			last = nil
			step.do()
			expect.MustTrue(t, last != nil, step.name, "the test has counted no call")
			row := []int{last.Instructions / n, last.Made / n, last.Functions / n, last.Commands}
			compareRow(t, string(page), fmt.Sprintf("%s, %d in a call", step.name, n), row)
			if os.Getenv("TDF_COST") != "" {
				t.Logf("%s, %d in a call: %d instructions per task\n%s", step.name, n, row[0], dearest(script, last, n))
			}
		}
	}
}

type plainStep struct {
	name string
	do   func()
}

// plainSteps returns the calls that bring n plain tasks through their lives. Each call is made twice, so that the
// script's answers and lists exist at the second time.
func plainSteps(t *testing.T, s *Store, n int) []plainStep {
	ctx := t.Context()
	var claims []Claim
	var now tdf.Time
	finished := []int64{}
	open := func() {
		tasks := make([]tdf.Properties, n)
		for i := range tasks {
			tasks[i] = define((fmt.Sprint(i) + strings.Repeat("x", 100))[:100])
		}
		expect.Result(s.Open(ctx, "manager", tasks...)).OK(t)
	}
	claim := func() {
		c := expect.Result(s.Claim(ctx, ClaimParams{Worker: "w", Most: n, Lease: 600})).Value(t)
		expect.MustLen(t, c.Claims, n)
		claims, now = c.Claims, c.Now
	}
	report := func() {
		results := make([]tdf.Move, n)
		for i, c := range claims {
			var err error
			results[i], err = c.Task.Execute(c.ID, tdf.Result{Output: "done", Exit: "0", Started: now, Seconds: 1.5, CPUSeconds: 1.25, MaxRSS: 1 << 20})
			must(t, err)
			finished = append(finished, c.Task.ID)
		}
		expect.Result(s.Execute(ctx, "w", results...)).OK(t)
	}
	settle := func() {
		moved, _, err := s.SettleUsual(ctx, "server", tdf.UsualSuccess(), now.Add(60), n)
		expect.NoError(t, err, "settled", moved)
		expect.MustEqual(t, moved, n)
	}
	archive := func() {
		found := expect.Result(s.Read(ctx, finished, Want{Fields: Whole})).Value(t)
		var units []Unit
		for i := range found {
			m := expect.Result(found[i].Task.Archive()).Value(t)
			units = append(units, Unit{Moves: []tdf.Move{m}})
		}
		finished = finished[:0]
		expect.Result(s.Apply(ctx, "manager", units...)).OK(t)
	}
	all := []plainStep{{"open", open}, {"claim", claim}, {"report", report}, {"settle", settle}, {"archive", archive}}
	for _, step := range all {
		step.do()
	}
	return all
}

// textOf returns the source of the script's form that this Redis knows.
func textOf(s *Store, x *lua.Script) string {
	if s.Script(x) == x.Forms().Plain {
		return x.Source()
	}
	return lua.AllowOOM + x.Source()
}

// compareRow compares the numbers of a call with its row in the table of a page.
func compareRow(t *testing.T, page, name string, row []int) {
	t.Helper()
	text := "| " + name + " |"
	for _, n := range row {
		text += fmt.Sprintf(" %d |", n)
	}
	found := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|(.*)\|$`).FindStringSubmatch(page)
	if found == nil {
		t.Errorf("docs/performance.md lacks the row\n%s", text)
		return
	}
	for i, cell := range strings.Split(found[1], "|") {
		was, err := strconv.Atoi(strings.TrimSpace(cell))
		if err != nil || i >= len(row) || math.Abs(float64(row[i]-was)) > max(0.05*float64(was), 1) {
			t.Errorf("docs/performance.md has the row\n%s\nbut it should be\n%s", found[0], text)
			return
		}
	}
}

// dearest lists the functions of a script that needed the most instructions per task.
func dearest(script *lua.Script, c *luacost.Counts, n int) string {
	of, number := map[string]int{}, 1
	if script.Full == lua.Runs {
		number++ // the line of the form's flag
	}
	begin := regexp.MustCompile(`^(?:local )?function ([\w.]+)`)
	for _, file := range append(strings.Fields(script.After), script.Name) {
		text, _ := lua.Files.ReadFile(file + ".lua")
		function := ""
		for line := range strings.Lines(string(text)) {
			if m := begin.FindStringSubmatch(line); m != nil {
				function = m[1]
			}
			of[file+".lua "+function] += c.Lines[number]
			if line == "end\n" || strings.HasPrefix(line, "local function") && strings.HasSuffix(line, " end\n") {
				function = ""
			}
			number++
		}
	}
	var text strings.Builder
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return of[b] - of[a] })
	for _, name := range names[:min(12, len(names))] {
		fmt.Fprintf(&text, "%8d %s\n", of[name]/n, name)
	}
	return text.String()
}
