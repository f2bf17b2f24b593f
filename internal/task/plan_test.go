package task

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func inRow(stages ...string) (after []StagesInRow) {
	for i := 0; i+1 < len(stages); i += 2 {
		after = append(after, StagesInRow{stages[i], stages[i+1]})
	}
	return after
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		plan Plan
		want string // the stages, or a part of the error
	}{
		"one stage":        {Plan{First: []string{"a"}}, "a"},
		"three stages":     {Plan{First: []string{"a"}, After: inRow("b", "c", "a", "b", "c", "")}, "a b c"},
		"two chains":       {Plan{First: []string{"x", "a"}, After: inRow("a", "b")}, "x a b"},
		"each":             {Plan{First: []string{"a"}, After: inRow("a", "b"), Each: []string{"b", "a"}}, "a b"},
		"no start":         {Plan{After: inRow("a", "b")}, `pipeline "p" has no start`},
		"never opened":     {Plan{First: []string{"a"}, After: inRow("x", "y")}, `stage "x" is never opened`},
		"each of nothing":  {Plan{First: []string{"a"}, Each: []string{"x"}}, `stage "x" is never opened`},
		"two starts":       {Plan{First: []string{"a", "a"}}, `stage "a" is opened twice`},
		"start and after":  {Plan{First: []string{"a", "b"}, After: inRow("a", "b")}, `stage "b" is opened twice`},
		"from two stages":  {Plan{First: []string{"a", "b"}, After: inRow("a", "c", "b", "c")}, `stage "c" is opened twice`},
		"cycle":            {Plan{First: []string{"a"}, After: inRow("a", "b", "b", "a")}, `stage "a" is opened twice`},
		"after itself":     {Plan{First: []string{"a"}, After: inRow("a", "a")}, `stage "a" is opened twice`},
		"separate cycle":   {Plan{First: []string{"a"}, After: inRow("x", "y", "y", "x")}, `stage "x" is never opened`},
		"two functions":    {Plan{First: []string{"a"}, After: inRow("a", "b", "a", "c")}, `stage "a": two functions run after it`},
		"two of each":      {Plan{First: []string{"a"}, Each: []string{"a", "a"}}, `stage "a": two functions handle its tasks`},
		"no name":          {Plan{Pipeline: "-", First: []string{""}}, "a"},
		"slash":            {Plan{First: []string{"a/b"}}, `stage: "a/b" contains a slash`},
		"control":          {Plan{First: []string{"a\x00"}}, "contains a control character"},
		"not UTF-8":        {Plan{First: []string{"a\xff"}}, "is not valid UTF-8"},
		"too long":         {Plan{First: []string{strings.Repeat("a", 198)}}, strings.Repeat("a", 198)},
		"longer":           {Plan{First: []string{strings.Repeat("a", 199)}}, "group: has 201 bytes; at most 200 are allowed"},
		"slash before":     {Plan{Pipeline: "p/q", First: []string{"a"}}, `pipeline: "p/q" contains a slash`},
		"newline in name":  {Plan{Pipeline: "p\n", First: []string{"a"}}, "contains a control character"},
		"long pipeline":    {Plan{Pipeline: strings.Repeat("p", 201), First: []string{"a"}}, "pipeline: has 201 bytes"},
		"next with spaces": {Plan{First: []string{"a"}, After: inRow("a", "b c")}, "a b c"},
		"invalid next":     {Plan{First: []string{"a"}, After: inRow("a", "b/c")}, `"b/c" contains a slash`},
	} {
		if c.plan.Pipeline == "" {
			c.plan.Pipeline = "p"
		}
		if name == "no name" {
			c.plan.Pipeline, c.want = "", "pipeline: is empty"
		}
		stages, err := c.plan.Stages()
		got := strings.Join(stages, " ")
		if err == nil {
			expect.MustEqual(t, got, c.want, name)
		}
		if err != nil {
			expect.Contains(t, err.Error(), c.want, name)
		}
	}
	expect.Result((&Plan{Pipeline: "p", First: []string{""}}).Stages()).Fails(t, "stage: is empty", "a start without a name")
}
