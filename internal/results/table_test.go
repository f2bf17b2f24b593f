package results

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// A campaign runs tasks whose input is their loss, in a test. Each run lasts an hour.
type campaign struct {
	*testing.T
	*managertest.Tester
}

func newCampaign(t *testing.T) *campaign {
	c := &campaign{t, managertest.New(t)}
	c.Program("p", func(r managertest.Run) managertest.Result {
		return managertest.Result{JSON: fmt.Sprintf(`{"loss":%s}`, r.Task.Input), Output: "step 1 loss=9\nstep 2 loss=" + r.Task.Input + "\nend\n", Duration: time.Hour}
	})
	return c
}

func (c *campaign) open(group string, definitions ...manager.Definition) []int64 {
	c.Helper()
	for i := range definitions {
		definitions[i].Program, definitions[i].Source, definitions[i].Group = "p", "rsync:/p/run.sh", group
	}
	var ids []int64
	for _, one := range expect.Result(c.Manager.Open(c.Context(), definitions...)).Value(c.T) {
		ids = append(ids, one.ID)
	}
	return ids
}

// run runs all tasks, and archives none.
func (c *campaign) run() {
	c.Helper()
	expect.NoError(c.T, c.Manager.Run(c.Context(), manager.Callbacks{AllGroups: true, Stop: func(_ context.Context, s manager.Summary) bool {
		return s.Counts.Unfinished() == 0
	}}))
}

// refresh refreshes a table at a time since the beginning of the test, until nothing is left to read.
func (c *campaign) refresh(of *Table, at time.Duration, longest time.Duration) TableStatus {
	c.Helper()
	for {
		expect.NoError(c.T, of.refresh(c.Context(), managing.Of(c.Manager).Store, time.Unix(1e9, 0).Add(at), longest))
		if s := of.Status(); !s.Behind {
			return s
		}
	}
}

func point(lr, loss string) manager.Definition {
	return manager.Definition{Input: loss, Meta: fmt.Sprintf(`{"lr":%s,"opt":"adam"}`, lr)}
}

func table(t *testing.T, c Choice) *Table {
	t.Helper()
	return expect.Result(NewTable(c)).Value(t)
}

// sum returns the sum of a column of numbers, without missing values.
func sum(t *testing.T, of *Table, name string) (sum float64) {
	t.Helper()
	c := of.Columns(name)[0]
	expect.MustTrue(t, c != nil, "no column", name, "in", of.Status().Names)
	for _, v := range c.Numbers {
		if !math.IsNaN(v) {
			sum += v
		}
	}
	return sum
}

// A table follows a campaign: new results, retries and removals. It reads only tasks that have finished since.
func TestTable(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	ids := c.open("g", point("0.1", "1"), point("0.2", "2"), point("0.3", "4"))
	c.open("other", point("1", "100"))
	of := table(t, Choice{Group: "g", Pattern: `^step 2 loss=(?P<last>\d+)`})
	expect.Equal(t, c.refresh(of, 0, time.Hour).Rows, 0, "rows before the tasks ran")
	c.run()
	s := c.refresh(of, time.Second, time.Hour)
	expect.Equal(t, []any{s.Rows, s.OneOf, s.Looked}, []any{3, 1, int64(4)}, "rows")
	expect.Equal(t, s.Names[:4], []string{"lr", "opt", "result.loss", "match.last"}, "columns")
	expect.Equal(t, sum(t, of, "result.loss"), 7, "sum of loss")
	expect.Equal(t, sum(t, of, "match.last"), 7, "sum of the matches")
	expect.Equal(t, sum(t, of, "seconds"), 3*3600, "sum of seconds")
	expect.Equal(t, of.Columns("opt")[0].Texts, []string{"adam"}, "texts")
	expect.True(t, of.Columns("none")[0] == nil, "a column that does not exist")

	c.open("g", point("0.4", "8"))
	c.run()
	c.refresh(of, 2*time.Second, time.Hour)
	expect.Equal(t, sum(t, of, "result.loss"), 15, "sum with the new task")
	expect.Equal(t, c.refresh(of, 3*time.Second, time.Hour).Looked, 1, "tasks that were looked at: that of the last second")

	expect.Result(c.Manager.Retry(t.Context(), manager.Changes{Input: new("16")}, manager.ByIDs(ids[0])...)).OK(t)
	c.run()
	s = c.refresh(of, 4*time.Second, time.Hour)
	expect.Equal(t, sum(t, of, "result.loss"), 30, "sum with the second result of a task")
	expect.Equal(t, s.Rows, 4, "rows")

	expect.Result(c.Manager.Archive(t.Context(), manager.ByIDs(ids[0])...)).OK(t)
	expect.Equal(t, c.refresh(of, 5*time.Second, time.Hour).Rows, 4, "rows with an archived task")
	expect.Result(c.Manager.Remove(t.Context(), manager.ByIDs(ids[0], ids[1])...)).OK(t)
	c.refresh(of, 2*time.Minute, time.Hour)
	expect.Equal(t, sum(t, of, "result.loss"), 12, "sum without the removed tasks")

	whole := table(t, Choice{Group: "g", Owner: "nobody"})
	expect.Equal(t, c.refresh(whole, 0, time.Hour).Rows, 0, "rows of a table for another owner")
}

// Many pages show the same table at the same time.
func TestTableIsShared(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	c.open("g", point("1", "1"), point("2", "2"))
	c.run()
	of := table(t, Choice{Group: "g"})
	var pages sync.WaitGroup
	for range 4 {
		pages.Go(func() {
			for range 20 {
				expect.NoError(t, of.Refresh(t.Context(), c.Manager, time.Hour))
				of.Status()
				loss := of.Columns("result.loss")[0]
				if loss != nil {
					expect.Compare(t, len(loss.Numbers), "<=", 2)
				}
			}
		})
	}
	pages.Wait()
	expect.Equal(t, sum(t, of, "result.loss"), 3, "sum of loss")
}

// A table that may read only for a moment goes on with the next call. A page of the walk has 300 tasks.
func TestTableReadsInParts(t *testing.T) {
	t.Parallel()
	c := newCampaign(t)
	var all []manager.Definition
	for range 310 {
		all = append(all, point("1", "1"))
	}
	expect.Result(c.Manager.Cancel(t.Context(), manager.ByIDs(c.open("g", all...)...)...)).OK(t)
	of := table(t, Choice{Group: "g"})
	expect.NoError(t, of.refresh(t.Context(), managing.Of(c.Manager).Store, time.Now(), 0))
	s := of.Status()
	expect.True(t, s.Behind, s)
	expect.Compare(t, s.Rows, ">", 0)
	expect.Compare(t, s.Rows, "<", 310)
	expect.Equal(t, s.Of, 310)
	c.refresh(of, 0, 0)
	expect.Equal(t, sum(t, of, "lr"), 310, "sum of a parameter")
}

// A table has bounds: of rows, cells, columns, names and texts. The sample depends only on the ids.
func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	const maxRows, maxCells = 5000, 100_000
	fill := func(rows int, meta func(i int) string) *Table {
		of := table(t, Choice{Group: "g", Fields: FromResult})
		expect.Equal(t, of.maxRows, 100_000, "docs/dashboard.md has other bounds")
		expect.Equal(t, of.maxCells, 2_000_000, "docs/dashboard.md has other bounds")
		of.maxRows, of.maxCells = maxRows, maxCells
		for i := range rows {
			of.put(manager.TaskOf(&task.Task{ID: int64(i + 1), State: task.Succeeded, Properties: task.Properties{Meta: meta(i)}, Rounds: task.Rounds{0: {Worker: "w"}}}, false))
		}
		return of
	}
	of := fill(maxRows+1, func(i int) string { return fmt.Sprintf(`{"i":%d}`, i+1) })
	s := of.Status()
	expect.Equal(t, s.OneOf, 2)
	expect.Compare(t, s.Rows, ">", maxRows*4/10)
	expect.Compare(t, s.Rows, "<", maxRows*6/10)
	for row, v := range of.Columns("i")[0].Numbers {
		expect.MustEqual(t, int64(v), of.ids[row], "row", row)
		expect.MustTrue(t, of.has(int64(v)), "row", row, "has the values of task", v, "and the id", of.ids[row])
		expect.MustEqual(t, of.row[int64(v)], row)
	}
	of = fill(maxCells/maxTableColumns+100, func(i int) string {
		var parts []string
		for k := range 20 {
			parts = append(parts, fmt.Sprintf(`"p%d":1`, i%50*20+k))
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
	s = of.Status()
	expect.Len(t, s.Names, maxTableColumns)
	expect.Compare(t, s.Rows*len(s.Names), "<=", maxCells)
	expect.Equal(t, s.OneOf, 2)
	of = fill(maxTexts+50, func(i int) string {
		return fmt.Sprintf(`{"t":"%d%s","%s":1}`, i, strings.Repeat("\u202e", 1000), strings.Repeat("x", maxText+1))
	})
	texts := of.Columns("t")[0]
	expect.MustLen(t, texts.Texts, maxTexts+1)
	expect.Equal(t, texts.Texts[maxTexts], OtherText)
	for _, text := range texts.Texts {
		expect.True(t, len(text) <= maxText+4, len(text))
	}
	expect.True(t, of.Columns(strings.Repeat("x", maxText+1))[0] == nil, "a long name")
	tables := &Tables{}
	for i := range 3 * maxTables {
		expect.Result(tables.Of(Choice{Group: fmt.Sprint(i)})).OK(t)
	}
	expect.Len(t, tables.all, maxTables)
	first := expect.Result(tables.Of(Choice{Group: "a"})).Value(t)
	expect.True(t, expect.Result(tables.Of(Choice{Group: "a"})).Value(t) == first, "the table of a choice is made once")
	expect.True(t, expect.Result(tables.of(Choice{Group: "a"}, time.Now().Add(tableLife+time.Minute))).Value(t) != first, "a table is forgotten")
	expect.Len(t, tables.all, 1)
}

// A column is one of numbers until it gets a text. Results come in any kind.
func TestMixedColumns(t *testing.T) {
	t.Parallel()
	of := table(t, Choice{Group: "g", Pattern: "(x)"})
	for i, meta := range []string{`{"a":1,"outcome":"mine"}`, `{"a":1e400,"match":5}`, `{"a":"NaN"}`, `{}`, `{"a":"text"}`, `{"a":null}`, `{"a":[1]}`, `{"a":true}`, `{"a":1}`, "no JSON", ""} {
		r := &task.Round{Worker: "w", Output: "x"}
		of.put(manager.TaskOf(&task.Task{ID: int64(i + 1), Properties: task.Properties{Meta: meta}, Rounds: task.Rounds{0: r}}, false))
	}
	of.put(manager.TaskOf(&task.Task{ID: 12, Properties: task.Properties{Meta: `{"a":"of another input"}`}, InputReplaced: true, Rounds: task.Rounds{}}, false))
	a := of.Columns("a")[0]
	var got []string
	for _, code := range a.Codes {
		if code < 0 {
			got = append(got, "-")
		} else {
			got = append(got, a.Texts[code])
		}
	}
	expect.Equal(t, strings.Join(got, " "), "1 1e400 NaN - text - [1] true 1 - - -")
	var ids Column
	for row, value := range []string{"007", "7", "1e5", "100000", "", "NA12878"} {
		ids.set(row, value)
	}
	expect.Equal(t, ids.Texts, []string{"007", "7", "1e5", "100000", "NA12878"}, "texts that look like numbers")
	expect.Equal(t, of.Columns("parameter.outcome")[0].Texts, []string{"mine"}, "a parameter with the name of another column")
	expect.Equal(t, of.Columns("parameter.match")[0].Numbers[1], 5, "a parameter with the name of a match")
	expect.Equal(t, of.Columns("match")[0].Texts, []string{"x"})
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, output, want string }{
		{`loss=(\d+)`, "loss=1\nloss=2\nend", "map[match:2]"},
		{`loss=\d+`, "loss=1 loss=2\r\n", "map[match:loss=1]"},
		{`(?P<a>\d)(?P<b>x)?(.)`, "1y", "map[match.a:1 match.b:]"},
		{`^end$`, "end\nend of it", "map[match:end]"},
		{`x`, "", "map[]"},
		{`$`, "", "map[match:]"},
		{`(\d+)`, "7\n" + strings.Repeat("x", outputSearched), "map[]"},
	} {
		pattern := expect.Result(ParsePattern(c.pattern)).Value(t)
		expect.Equal(t, fmt.Sprint(matches(pattern, c.output)), c.want, c.pattern)
	}
	expect.True(t, expect.Result(ParsePattern("")).Value(t) == (*regexp.Regexp)(nil), "no pattern")
	for pattern, problem := range map[string]string{
		"(": "no regular expression", `(\d{500})`: "repeats too much", "(((a{10}){10}){10}){10}": "pattern", strings.Repeat("a", 201): "longer than 200", "a{1001}": "no regular",
		"\xff": "no regular",
	} {
		expect.Result(ParsePattern(pattern)).Fails(t, problem)
	}
	// Each line is searched once: a pattern that could begin at every letter, and that has to look at all that follows, still ends.
	slow := expect.Result(ParsePattern(`(a.*b)+c|(a|aa|.*)+d`)).Value(t)
	expect.Equal(t, fmt.Sprint(matches(slow, strings.Repeat("ab", outputSearched))), "map[]")
}
