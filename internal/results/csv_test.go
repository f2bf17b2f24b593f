package results

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager"
)

// taskWith returns a task with the given meta and result.
func taskWith(meta, result string) *manager.Task {
	t := &tdf.Task{ID: 1, Properties: tdf.Properties{Meta: meta}, Rounds: tdf.Rounds{0: {Worker: "w", Result: result}}}
	return friend.TaskOf(t, false).(*manager.Task)
}

func TestColumns(t *testing.T) {
	c := newColumns(FromResult)
	first := taskWith(`{"b":1.50,"id":"x","result.a":[1, 2],"output":null}`, `{"a":{"c": "ä"},"":true}`)
	for _, task := range []*manager.Task{first, taskWith("", `"text"`), taskWith("plain\xff", "7"), taskWith(`{"a":1}`, "")} {
		c.collect(task)
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
		cells := c.row(row.task, names)
		for name, value := range row.want {
			expect.Equal(t, cells[slices.Index(names, name)], value, name)
		}
	}
	expect.Equal(t, c.late, 0, "values have no column")
	c = newColumns(FromResult)
	c.collect(first)
	c.row(taskWith(`{"new":1}`, `{"b":2}`), c.names(true))
	expect.Equal(t, c.late, 2, "values have no column")
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
			task := &tdf.Task{ID: 1, Rounds: tdf.Rounds{0: {Worker: "w", Result: result, Output: `{"n":2}`}}}
			c.collect(friend.TaskOf(task, false).(*manager.Task))
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
	for _, task := range tasks {
		c.collect(task)
	}
	names := c.names(false)
	for i, want := range []map[string]string{
		{"result": wide(0, 20_000), "result.p0": ""},
		{"meta": long, "result.y": "2", "result": ""},
		{"result": "", "result.p3999": "1"},
		{"result": wide(4000, 4000)},
		{"a": "1", "result.z": "3", "result": "", "meta": ""},
	} {
		row := c.row(tasks[i], names)
		for name, value := range want {
			expect.True(t, row[slices.Index(names, name)] == value, "task", i, name)
		}
	}
	expect.Equal(t, c.late, 0, "values have no column")
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
