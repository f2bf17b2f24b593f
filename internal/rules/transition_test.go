package rules

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// taskIn returns a valid task in state s.
func taskIn(s task.State) *task.Task {
	d := task.Defaults("p", "rsync:/p/run.sh", "1")
	d.EndBefore = 1000
	t := &task.Task{ID: 7, Properties: d, State: s, Round: 2, Fails: 1, Timeouts: 1, Rounds: task.Rounds{0: {}, 1: {}, 2: {}}}
	for i := range t.Rounds {
		t.Rounds.At(i).Entered = map[task.State]task.Time{}
	}
	r := t.Current()
	r.Worker, r.Claim = "w", "c"
	r.Entered[task.Running] = 100
	t.LeaseUntil, t.Deadline = 130, 1000
	if s == task.Executed {
		r.Entered[task.Executed], r.Committed = 110, true
	}
	if s.Finished() {
		t.Outcome = string(s)
	}
	return t
}

// requests maps each verb to the function that returns the transition's Move.
var requests = map[Verb]func(*task.Task) (Move, error){
	VerbExecute: func(t *task.Task) (Move, error) { return Execute(t, "c", Result{Exit: "0"}) },
	VerbSucceed: func(t *task.Task) (Move, error) { return move(t, VerbSucceed, task.Succeeded) },
	VerbFail:    func(t *task.Task) (Move, error) { return fail(t) },
	VerbTimeOut: func(t *task.Task) (Move, error) { return TimeOut(t) },
	VerbExpire:  func(t *task.Task) (Move, error) { return Expire(t) },
	VerbArchive: func(t *task.Task) (Move, error) { return Archive(t) },
	VerbRelease: func(t *task.Task) (Move, error) { return Release(t, "draining") },
	VerbUnclaim: func(t *task.Task) (Move, error) { return Unclaim(t, "draining") },
	VerbReject:  func(t *task.Task) (Move, error) { return reject(t, "nonsense") },
	VerbCancel:  func(t *task.Task) (Move, error) { return Cancel(t) },
	VerbReopen:  func(t *task.Task) (Move, error) { return Reopen(t) },
	VerbRemove:  func(t *task.Task) (Move, error) { return Remove(t) },
	VerbReplace: func(t *task.Task) (Move, error) { return Replace(t) },
	VerbChange:  func(t *task.Task) (Move, error) { return Change(t, task.Changes{Input: new("2")}) },
	VerbUnblock: func(t *task.Task) (Move, error) { return unblock(t) },
	VerbRescore: func(t *task.Task) (Move, error) {
		if t.State == task.Running {
			t.LeaseUntil, t.Lease = 5000, 30
			m, _ := RescoreRunning(t, 100, 100)
			return m, nil
		}
		if t.State != task.Open {
			return move(t, VerbRescore, task.Open)
		}
		t.Current().Entered[task.Open] = 5000
		m, _ := Rescore(t, 5000, 100, 0)
		return m, nil
	},
	VerbLose: func(t *task.Task) (Move, error) {
		if t.State != task.Running { // only the audit may declare a task lost if it is not running
			return move(t, VerbLose, task.Open)
		}
		return lose(t, task.Running)
	},
}

// This test calls the function of each verb for tasks in each state. If the transition is permitted, the function
// returns a Move that matches the row of the transition in [Transitions]. Otherwise it returns an error with the task's
// state and round.
func TestEveryStateAndVerb(t *testing.T) {
	for _, state := range task.States {
		for verb, request := range requests {
			one := taskIn(state)
			m, err := request(one)
			if !allowed(verb, state) {
				e, ok := err.(*StateError)
				expect.MustTrue(t, ok, verb, "from", state, "error", err)
				expect.Equal(t, e.State, state, verb)
				expect.Equal(t, e.Round, 2, verb, "from", state)
				expect.Equal(t, e.ID, 7, verb, "from", state)
				expect.Equal(t, e.Verb, verb, state)
				continue
			}
			if err != nil {
				t.Errorf("%s from %s: %v", verb, state, err)
				continue
			}
			checkRow(t, one, m)
		}
	}
}

// allowedFrom lists the permitted verbs of each state (docs/lifecycle.md). It repeats the content of [Transitions], so
// that the test finds a missing or superfluous row.
var allowedFrom = map[task.State]string{
	task.Open:      "reject, expire, cancel, change, rescore, unblock, replace",
	task.Running:   "execute, time out, expire, lose, release, unclaim, cancel, rescore",
	task.Executed:  "succeed, fail, expire",
	task.Succeeded: "archive, reopen, remove",
	task.Failed:    "archive, reopen, remove",
	task.TimedOut:  "archive, reopen, remove",
	task.Expired:   "archive, reopen, remove",
	task.Archived:  "reopen, remove",
}

func allowed(v Verb, from task.State) bool {
	return slices.Contains(strings.Split(allowedFrom[from], ", "), string(v))
}

func checkRow(t *testing.T, one *task.Task, m Move) {
	t.Helper()
	tr, ok := findTransition(m.Verb, m.From, m.To)
	if !ok {
		t.Errorf("%s: %s -> %s is not in the table", m.Verb, m.From, m.To)
		return
	}
	expect.Equal(t, m.From, one.State)
	expect.Equal(t, m.Round, one.Round)
	next := one.Round
	if tr.NewRound {
		next++
	}
	expect.Equal(t, m.Next, next, m.Verb, m.From, "->", m.To, "next round")
	set := map[string]string{}
	for _, f := range m.Set {
		_, twice := set[f.Name]
		expect.True(t, !twice, m.Verb, "sets", f.Name, "twice")
		set[f.Name] = f.Value
	}
	if m.To == task.None {
		expect.True(t, len(m.Set)+len(m.Stamp) == 0, m.Verb, "writes", m.Set, m.Stamp)
		return
	}
	expect.Equal(t, set["state"], string(m.To), m.Verb, "writes the state")
	for _, c := range []task.Counter{task.Fails, task.Timeouts, task.Losses, task.Releases, task.Reopens, task.Revisions} {
		_, counted := set[string(c)]
		expect.True(t, counted == (c == tr.Counts), m.Verb, m.From, "->", m.To, "counts", c, counted)
	}
	if m.Verb != VerbChange && m.Verb != VerbRescore && m.Verb != VerbUnblock && m.Verb != VerbUnclaim {
		expect.Equal(t, m.Stamp[0].Name, task.RoundField(m.Next, string(m.To)))
	}
	expect.Equal(t, m.To.Settled(), set["outcome"] != "", m.Verb, m.From, "-> … outcome", set["outcome"])
}

func TestEveryRowIsReachable(t *testing.T) {
	reached := map[string]bool{}
	for _, state := range task.States {
		for _, request := range requests {
			for _, limit := range []int{0, 9} {
				one := taskIn(state)
				one.MaxFails, one.MaxTimeouts, one.MaxLosses = limit, limit, limit
				if m, err := request(one); err == nil {
					reached[string(m.Verb+" "+Verb(m.To))] = true
				}
			}
		}
	}
	elsewhere := []Verb{VerbOpen, VerbClaim} // Properties.OpenFields and claim.lua make these transitions
	for _, tr := range Transitions {
		key := string(tr.Verb + " " + Verb(tr.To))
		if !reached[key] {
			expect.True(t, slices.Contains(elsewhere, tr.Verb), "no request makes the transition", key)
		}
	}
}

// docs/lifecycle.md contains the same table of transitions as the code.
func TestDocumentedTransitions(t *testing.T) {
	page := expect.Result(os.ReadFile("../../docs/lifecycle.md")).Value(t)
	var documented []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 6 && !strings.Contains(line, "---") {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			documented = append(documented, strings.Join(append(cells[:4], cells[5]), " | "))
		}
	}
	expect.MustTrue(t, len(documented) != 0, "docs/lifecycle.md has no table of six columns")
	var want []string
	for _, tr := range Transitions {
		want = append(want, row(tr))
	}
	expect.Equal(t, documented[1:], want, "docs/lifecycle.md … the code", strings.Join(want, "\n"))
}

// row returns a transition as "verb | from | to | by | counts". It omits the page's column "when", because the code
// does not contain this prose.
func row(tr Transition) string {
	var from, by []string
	for _, s := range tr.From {
		if s == task.None {
			s = "(none)"
		}
		from = append(from, string(s))
	}
	for _, a := range tr.By {
		by = append(by, string(a))
	}
	counts := string(tr.Counts)
	if tr.NewRound {
		counts += ", round"
	}
	to := string(tr.To)
	if tr.To == task.None {
		to = "(none)"
	}
	return strings.Join([]string{string(tr.Verb), strings.Join(from, ", "), to, strings.Join(by, ", "), counts}, " | ")
}
