package results

import (
	"encoding/csv"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// taskWith returns a task with the given meta and result.
func taskWith(meta, result string) *manager.Task {
	t := &task.Task{ID: 1, Properties: task.Properties{Meta: meta}, Rounds: task.Rounds{0: {Worker: "w", Result: result}}}
	return manager.TaskOf(t, false)
}

func TestColumns(t *testing.T) {
	c := newColumns(FromResult)
	first := taskWith(`{"b":1.50,"id":"x","result.a":[1, 2],"output":null}`, `{"a":{"c": "ä"},"":true}`)
	for _, one := range []*manager.Task{first, taskWith("", `"text"`), taskWith("plain\xff", "7"), taskWith(`{"a":1}`, "")} {
		c.collect(one)
	}
	names := c.names(true)
	want := []string{"b", "parameter.id", "result.a", "parameter.output", "meta", "a", "result.result.a", "result.", "result"}
	fixed := slices.Concat(firstColumns, runColumns, printedColumns, lastColumns)
	got := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(fixed, n) })
	expect.Equal(t, got, want, "columns")
	for _, row := range []struct {
		task *manager.Task
		want map[string]string
	}{
		{first, map[string]string{"b": "1.50", "parameter.id": "x", "result.a": "[1,2]", "parameter.output": "", "result.result.a": `{"c":"ä"}`, "result.": "true", "base64": ""}},
		{taskWith("", `"text"`), map[string]string{"result": "text", "meta": ""}},
		{taskWith("plain\xff", "7"), map[string]string{"meta": "cGxhaW7/", "result": "7", "base64": "meta"}},
	} {
		cells, _ := c.row(row.task, names)
		for name, value := range row.want {
			expect.Equal(t, cells[slices.Index(names, name)], value, name)
		}
	}
}

// The pickle that a function in Python has returned is no column. Other programs may have a field of this name.
func TestPicklesAreNoColumns(t *testing.T) {
	c := newColumns(FromResult)
	call := taskWith("", `{"loss":1,"pickle":"eJw="}`)
	call.Program = task.FunctionProgram
	c.collect(call)
	expect.Equal(t, c.resultOrder, []string{"result.loss"})
	cells, _ := c.row(call, c.names(false))
	expect.NotContains(t, strings.Join(cells, ","), "eJw=")
	c.collect(taskWith("", `{"loss":1,"pickle":"a jar"}`))
	expect.Equal(t, c.resultOrder, []string{"result.loss", "result.pickle"})
}

// sourceOf is a Source of tasks that counts how many it has passed on.
func sourceOf(passed *int, tasks ...*manager.Task) Source {
	return func(change func(*manager.Query)) iter.Seq2[*manager.Task, error] {
		var q manager.Query
		change(&q)
		all := slices.Clone(tasks)
		if q.Order == manager.NewestFirst {
			slices.Reverse(all)
		}
		return func(yield func(*manager.Task, error) bool) {
			for _, t := range all {
				if q.Order == manager.ByID {
					*passed++
				}
				if !yield(t, nil) {
					return
				}
			}
		}
	}
}

// The rows come as the tasks are read. If there are many tasks, values that neither the first nor the newest of them
// have stand in one column, and none is lost.
func TestRowsComeAtOnce(t *testing.T) {
	tasks := slices.Repeat([]*manager.Task{taskWith(`{"n":1}`, `{"a":1}`)}, 3*sampledTasks)
	odd := &task.Task{ID: 7, InputReplaced: true, Rounds: task.Rounds{0: {Worker: "w", Result: `{"b":"<x>"}`}}}
	odd.Meta, odd.Resources = `{"id":"y\u0000"}`, "cpus=2"
	tasks[sampledTasks] = manager.TaskOf(odd, false)
	tasks[len(tasks)-1] = taskWith("", `{"last":2}`)
	passed, first := 0, 0
	var text strings.Builder
	out := writerFunc(func(b []byte) (int, error) {
		if first == 0 {
			first = passed
		}
		return text.Write(b)
	})
	done := expect.Result(CSV(sourceOf(&passed, tasks...), out, Options{Fields: FromResult})).Value(t)
	expect.Equal(t, first, sampledTasks, "tasks before the first row")
	expect.Equal(t, passed, len(tasks), "each task is read once")
	expect.Equal(t, done.Rows, len(tasks))
	expect.Equal(t, done.Other, 1)
	rows := expect.Result(csv.NewReader(strings.NewReader(text.String())).ReadAll()).Value(t)
	expect.Equal(t, rows[0][len(rows[0])-4:], []string{"result.a", "result.last", "other_columns", "base64"})
	expect.Equal(t, slices.Index(rows[0], "n"), len(firstColumns))
	expect.Equal(t, rows[1+sampledTasks][len(rows[0])-2:], []string{
		`{"input_replaced":"true","parameter.id":"eQA=","resources":"cpus=2","result.b":"\u003cx\u003e"}`, "parameter.id",
	})
	expect.Equal(t, rows[len(tasks)][len(rows[0])-4:], []string{"", "2", "", ""})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// The rows of chosen columns come when the columns are known. A column that only later tasks have can be chosen, too.
func TestRowsOfChosenColumns(t *testing.T) {
	tasks := slices.Repeat([]*manager.Task{taskWith(`{"n":1}`, "")}, sampledTasks+2)
	tasks[len(tasks)-1] = taskWith("", `{"late":2}`)
	passed := 0
	for _, c := range []struct {
		columns, tail, fails string
		before               int // the tasks that are read before the first row
	}{
		{"id,n", "1,\n", "", 1},
		{"result.late", "\n\"\"\n2\n", "", sampledTasks},
		{"id,resources", "1,\n", "", 1},
		{"n,nosuch", "1,\n,\n", "unknown column \"nosuch\"; the columns are id, ", sampledTasks},
		{"id,n,id", "", "column \"id\" is named twice", 0},
		{"other_columns", "\n", "unknown column", sampledTasks},
	} {
		first := 0
		var text strings.Builder
		passed = 0
		out := writerFunc(func(b []byte) (int, error) {
			if first == 0 {
				first = passed
			}
			return text.Write(b)
		})
		done, err := CSV(sourceOf(&passed, tasks...), out, Options{Fields: FromResult, Columns: strings.Split(c.columns, ",")})
		expect.Equal(t, first, c.before, c.columns)
		expect.True(t, strings.HasSuffix(text.String(), c.tail), c.columns, text.String()[max(0, text.Len()-40):])
		if c.fails != "" {
			expect.Fails(t, err, c.fails, c.columns)
			continue
		}
		expect.NoError(t, err, c.columns)
		expect.Equal(t, done.Rows, len(tasks), c.columns)
	}
	_, err := CSV(sourceOf(&passed, tasks[:1]...), writerFunc(nil), Options{Fields: FromResult, Columns: []string{"nosuch"}})
	expect.Fails(t, err, "unknown column", "nothing was written")
}

// Columns come from the last line if the user asks for it, or if there is no result.
func TestFieldsOfTheLastLine(t *testing.T) {
	long := strings.Repeat(" ", maxLastLine)
	c := newColumns(FromLastLine)
	for output, want := range map[string]string{
		"":          "",
		"no JSON":   "",
		"\n\n \t\n": "",
		`{"a":1}`:   "a=1",
		"epoch 1\n" + `{"a": -1.50, "b": 1e400, "c": 12345678901234567890}` + " \r\n\n": "a=-1.50 b=1e400 c=12345678901234567890",
		"10 %\r100 %\r" + `{"a":1}`: "a=1",
		`{"a":1}` + "\nend":         "",
		`{"a":1,"s":"x","t":true,"n":null,"l":[1],"o":{"p":2},"":3}`: "a=1 =3",
		`{"a":NaN,"b":1}`:              "",
		`{"a":Infinity}`:               "",
		`{"a":1} {"b":2}`:              "",
		`{"a":1`:                       "",
		`[1]`:                          "",
		"1":                            "",
		"\xff" + `{"a":1}`:             "",
		`{"a":1,"a":2}`:                "a=1 a=2",
		long + `{"a":1}`:               "",
		long + "\n" + `{"a":1}` + long: "a=1",
		`{"a":1,"b":"` + long + `"}`:   "",
		strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000): "",
	} {
		var parts []string
		for _, f := range c.numbersOf(lastLine(output)) {
			parts = append(parts, f.key+"="+f.text())
		}
		expect.Equal(t, strings.Join(parts, " "), want, output)
	}
	slices.Sort(c.leftOut)
	expect.Equal(t, c.leftOut, []string{"l", "o", "s", "t"}, "fields without a column")
	for source, want := range map[string]string{FromAuto: "[result.r result.n]", FromLastLine: "[result.n]", FromResult: "[result.r]"} {
		c := newColumns(source)
		for _, result := range []string{`{"r":1}`, ""} {
			one := &task.Task{ID: 1, Rounds: task.Rounds{0: {Worker: "w", Result: result, Output: `{"n":2}`}}}
			c.collect(manager.TaskOf(one, false))
		}
		expect.Equal(t, fmt.Sprint(c.resultOrder), want, "--fields", source)
	}
}

// A meta or result that needs more columns than are free stands in one column, and takes none from the others.
func TestColumnsAreLimited(t *testing.T) {
	wide := func(from, n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `,"p%d":1`, from+i)
		}
		return "{" + text.String()[1:] + "}"
	}
	long := `{"` + strings.Repeat("x", maxNames) + `":1}`
	tasks := []*manager.Task{
		taskWith("", wide(0, 20_000)), taskWith(long, `{"y":2}`), taskWith("", wide(0, 4000)),
		taskWith("", wide(4000, 4000)), taskWith(`{"a":1}`, `{"z":3}`),
	}
	c := newColumns(FromResult)
	for _, one := range tasks {
		c.collect(one)
	}
	names := c.names(false)
	for i, want := range []map[string]string{
		{"result": wide(0, 20_000), "result.p0": ""},
		{"meta": long, "result.y": "2", "result": ""},
		{"result": "", "result.p3999": "1"},
		{"result": wide(4000, 4000)},
		{"a": "1", "result.z": "3", "result": "", "meta": ""},
	} {
		row, _ := c.row(tasks[i], names)
		for name, value := range want {
			expect.True(t, row[slices.Index(names, name)] == value, "task", i, name)
		}
	}
	for i := range 2 * maxColumns {
		c.collect(taskWith(fmt.Sprintf(`{"p%d":1}`, i), ""))
	}
	expect.Compare(t, len(c.names(false)), "<=", maxColumns+1) // that of whole texts
}

func TestFieldsOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"{}":                             "",
		` {"a": 1, "b": "x\ny"}`:         "a=1 b=x\ny",
		`{"a":1`:                         "*={\"a\":1",
		`{"a":1e400,"b":12345678901234}`: "a=1e400 b=12345678901234",
		"[1, 2]":                         "*=[1,2]",
		`{"a":"\ud800"}`:                 "a=\uFFFD",
		"null":                           "*=",
		"free text":                      "*=free text",
	} {
		var parts []string
		for _, f := range fieldsOf(text) {
			parts = append(parts, strings.ReplaceAll(f.key, wholeKey, "*")+"="+f.text())
		}
		expect.Equal(t, strings.Join(parts, " "), want, text, "has")
	}
}

// A long list of columns in an error is cut.
func TestChoose(t *testing.T) {
	all := []string{"id", strings.Repeat("ä", maxListed)}
	_, err := choose(all, []string{"no"})
	expect.Compare(t, len(err.Error()), "<", maxListed+100)
	expect.True(t, utf8.ValidString(err.Error()), "the error is UTF-8")
	expect.Equal(t, expect.Result(choose(all, nil)).Value(t), all)
}
