package rules

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// Each verb that the package declares is in exactly one of the two tables.
func TestEachVerbIsInOneTable(t *testing.T) {
	files := expect.Result(filepath.Glob("*.go")).Value(t)
	var verbs []Verb
	for _, path := range files {
		file := expect.Result(goparser.ParseFile(token.NewFileSet(), path, nil, 0)).Value(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Verb") && len(v.Values) == 1 {
				text := expect.Result(strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)).Value(t)
				verbs = append(verbs, Verb(text))
			}
			return true
		})
	}
	expect.MustTrue(t, len(verbs) >= 20, "found only the verbs", verbs)
	for _, v := range verbs {
		moves := slices.ContainsFunc(Transitions, func(tr Transition) bool { return tr.Verb == v })
		keeps := slices.ContainsFunc(Upkeeps, func(u Upkeep) bool { return u.Verb == v })
		expect.True(t, moves != keeps, v, "in Transitions", moves, "in Upkeeps", keeps, "want one of them")
	}
}

// Each Move that is no transition has a verb of Upkeeps that is permitted in the state of its task. It keeps the round, and only a
// repair changes the state.
func TestUpkeepsOfEveryState(t *testing.T) {
	made := map[Verb]bool{}
	for _, state := range task.States {
		one := taskIn(state)
		removal := Move{ID: 7, Verb: VerbRemove, From: state, Round: 2, Next: 2}
		moves := []Move{Require(one), Reschedule(one, 5), removal.PutOff(true), Placement{ID: 7, Task: one, Lists: []task.State{state}}.Reindex("test")}
		if state.Finished() {
			moves = append(moves, removeOutputs(one))
		}
		for _, m := range moves {
			i := slices.IndexFunc(Upkeeps, func(u Upkeep) bool { return u.Verb == m.Verb })
			if i < 0 || !slices.Contains(Upkeeps[i].From, m.From) {
				t.Errorf("%s: the table has no row for %+v", state, m)
				continue
			}
			made[m.Verb] = true
			expect.Equal(t, m.From, state)
			expect.Equal(t, m.Round, 2, state)
			expect.Equal(t, m.Next, 2, state)
			expect.OneOf(t, m.To, "", state)
		}
	}
	byScripts := []Verb{VerbHold, VerbReturn}
	for _, u := range Upkeeps {
		expect.True(t, made[u.Verb] != slices.Contains(byScripts, u.Verb), u.Verb, "a function makes it", made[u.Verb])
	}
}

// docs/lifecycle.md contains the same table as the code.
func TestDocumentedUpkeeps(t *testing.T) {
	page := expect.Result(os.ReadFile("../../docs/lifecycle.md")).Value(t)
	_, table, _ := strings.Cut(string(page), "\n| verb | state | by | changes |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for i, line := range slices.Collect(strings.Lines(table)) {
		if i > 0 {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			got = append(got, strings.Join(cells[:3], " | "))
		}
	}
	for _, u := range Upkeeps {
		var from, by []string
		for _, s := range u.From {
			from = append(from, string(s))
		}
		for _, a := range u.By {
			by = append(by, string(a))
		}
		states := strings.Join(from, ", ")
		if len(u.From) == len(task.States) {
			states = "any"
		}
		want = append(want, "| "+string(u.Verb)+" | "+states+" | "+strings.Join(by, ", "))
	}
	expect.Equal(t, got, want, "docs/lifecycle.md", strings.Join(got, "\n"), "the code", strings.Join(want, "\n"))
}

// A guard names the version of the task, and writes nothing.
func TestRequire(t *testing.T) {
	for _, state := range task.States {
		one := &task.Task{ID: 7, State: state, Round: 2, Revision: 3}
		expect.Equal(t, Require(one).Claim, NoClaim, state, "a task without a claim")
		one.Rounds = task.Rounds{2: {Claim: "c"}}
		want := Move{ID: 7, Verb: VerbRequire, From: state, To: state, Round: 2, Next: 2, Revision: "3", Claim: "c"}
		expect.Equal(t, Require(one), want)
	}
}

func TestIfUnchanged(t *testing.T) {
	one := &task.Task{State: task.Open, Revision: 12}
	m := expect.Result(Cancel(one)).Value(t)
	expect.Equal(t, m.Revision, "")
	expect.Equal(t, m.IfUnchanged(one).Revision, "12")
}
