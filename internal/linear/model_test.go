package linear

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// An op is one call that concerns one task or one limit, with its answer.
type op struct {
	kind       string // a verb, or one of the kinds below
	call, ends int64  // the order of starts and answers; ends is never if the outcome is unknown

	input    string // names the task; the input of the task's program
	id       int64
	existing bool // open: another task with this id holds the unique key
	once     bool // open: other calls may have opened the task with the same request

	from, to    task.State
	round, next int
	claim       string // the claim that the task must have, or that it gets; "" for any
	fenced      bool   // the move also requires a score in the set of due tasks
	long        bool   // claim and renew: the lease does not end in this history
	result      bool   // the move stores the result of a round

	refused bool       // the call has changed nothing
	state   task.State // what a read or a refused call has seen: a state, which may be None, and in found, a round
	found   int
	holder  int64 // a refused reopen: the task that holds the unique key; else 0

	key, limit string // the unique key and the limit key of the task
	overdue    bool   // the end_before of the task is past
	whole      bool   // a read also has the results
	results    string // the claims whose results the task has, as in taskState
	running    int    // use: the number of running tasks with the limit key
}

const (
	kindRead  = "read"
	kindRenew = "renew"
	kindUse   = "use"
	kindGone  = "gone" // the answer to a claim leaves out a round that has ended
	never     = math.MaxInt64
	anyClaim  = "?" // the claim of a call without an answer
)

func (o op) String() string {
	ends := fmt.Sprint(o.ends)
	if o.ends == never {
		ends = "unknown"
	}
	text := fmt.Sprintf("%6d–%-7s %-8s task %d (%s)", o.call, ends, o.kind, o.id, o.input)
	add := func(wanted bool, format string, values ...any) {
		if wanted {
			text += fmt.Sprintf(format, values...)
		}
	}
	add(o.from != "", " from %s in round %d", o.from, o.round)
	add(o.to != "", " to %s in round %d", o.to, o.next)
	add(o.claim != "", " claim %s", o.claim)
	add(o.kind == kindUse, " limit %s: %d running", o.limit, o.running)
	add(o.key != "", " key %s", o.key)
	add(o.overdue, " overdue")
	add(o.long, " long lease")
	add(o.result, " result")
	add(o.existing, " existing")
	add(o.refused, " refused:")
	add(o.holder != 0, " task %d holds the key", o.holder)
	add(o.whole, " results %s", o.results)
	add(o.kind == kindRead || o.refused && o.holder == 0, " it is %s in round %d", o.state, o.found)
	return text
}

// mayFail reports whether the outcome of the call is unknown, so that it may have changed nothing. An open or a claim
// without an answer is in a history only if it has changed something.
func (o op) mayFail() bool {
	return o.ends == never && o.kind != string(rules.VerbOpen) && o.kind != string(rules.VerbClaim)
}

// A taskState is what the model of a task knows of it.
type taskState struct {
	id    int64
	state task.State
	round int
	claim string // of the round; NoClaim before it is claimed
	long  bool   // the lease does not end in this history
	done  string // the claims whose results were accepted, in the order of their rounds
}

// seen returns the state of the task if a call has seen it in the given state. Claims let overdue tasks expire.
func (s taskState) seen(state task.State, overdue bool) taskState {
	if s.state == task.Open && overdue && state == task.Expired {
		s.state = task.Expired
	}
	return s
}

func (s taskState) hasClaim(claim string) bool {
	return claim == "" || s.claim == claim || s.claim == anyClaim
}

// fits reports whether the task is as a move requires.
func (s taskState) fits(o op) bool {
	return s.state == o.from && s.round == o.round && s.hasClaim(o.claim)
}

// stepTask is the model of one task: a state machine.
func stepTask(s taskState, o op) (bool, taskState) {
	switch {
	case o.kind == string(rules.VerbOpen):
		if o.once && s.id == o.id {
			return true, s
		}
		return s.id == 0, taskState{id: o.id, state: task.Open, claim: rules.NoClaim}
	case o.kind == kindRead || o.refused:
		return stepRefused(s, o)
	case s.id != o.id:
		return false, s
	case o.kind == kindGone:
		return s.round > o.round || s.round == o.round && s.state != task.Open && s.state != task.Running, s
	case o.kind == string(rules.VerbClaim):
		ok := s.state == task.Open && s.round == o.round && !o.overdue
		s.state, s.claim, s.long = task.Running, o.claim, o.long
		return ok, s
	case o.kind == kindRenew:
		ok := s.fits(o)
		s.long = s.long || o.long
		return ok, s
	case o.result && strings.Contains(s.done, o.claim+";"):
		return true, s // a repeated report
	}
	return s.seen(o.from, o.overdue).move(o)
}

func (s taskState) move(o op) (bool, taskState) {
	ok := s.fits(o) && (o.kind != string(rules.VerbLose) || !s.long)
	s.state, s.round = o.to, o.next
	if o.result {
		s.done += o.claim + ";"
	}
	if o.next != o.round {
		s.claim, s.long = rules.NoClaim, false
	}
	return ok, s
}

// stepRefused is the model of calls that change nothing: a call is refused only if it has a reason, and what it says
// about the task is true.
func stepRefused(s taskState, o op) (bool, taskState) {
	if o.holder != 0 {
		return true, s // the model of the unique key checks the reason
	}
	s = s.seen(o.state, o.overdue)
	if s.id != o.id || s.state != o.state || s.round != o.found {
		return false, s
	}
	switch {
	case o.whole:
		return s.done == o.results, s
	case o.kind == kindRead || o.fenced:
		return true, s
	}
	repeated := o.result && strings.Contains(s.done, o.claim+";")
	known := s.claim != anyClaim || o.claim == ""
	return !repeated && !(s.fits(o) && known), s
}

// A keyState is what the model of a unique key knows of it.
type keyState struct {
	holder  int64
	settles bool // the holder may have finished, or may expire at any time: then it no longer holds the key
}

// stepKey is the model of one unique key: at most one task holds it.
func stepKey(s keyState, o op) (bool, keyState) {
	free := s.holder == 0 || s.settles
	archived := strings.HasPrefix(o.key, untilArchived)
	switch {
	case o.existing:
		return s.holder == o.id, s
	case o.holder != 0:
		return s.holder == o.holder, s
	case o.kind == string(rules.VerbOpen):
		if o.once && s.holder == o.id {
			return true, s
		}
		return free, keyState{o.id, o.overdue && !archived}
	case o.kind == string(rules.VerbReopen):
		return free || s.holder == o.id, keyState{o.id, o.overdue && !archived}
	case s.holder != o.id:
	case o.result: // an accepted report may repeat another one, which said something else
		s.settles = s.settles || !archived && o.to.Settled()
	case o.to == task.Archived, !archived && o.to.Settled():
		s = keyState{}
	}
	return true, s
}

// atMost is how many tasks of a limit key may run.
const atMost = 2

// stepLimit is the model of one limit key. Its state has the running rounds.
func stepLimit(s string, o op) (bool, string) {
	running := strings.Fields(s)
	round := fmt.Sprintf("%d:%d", o.id, o.round)
	switch o.kind {
	case kindUse:
		return len(running) == o.running, s
	case string(rules.VerbClaim):
		if len(running) >= atMost {
			return false, s
		}
		running = append(running, round)
		slices.Sort(running)
	default:
		running = slices.DeleteFunc(running, func(r string) bool { return r == round })
	}
	return true, strings.Join(running, " ")
}

// stepID is the model of one id: it is given to one task.
func stepID(s string, o op) (bool, string) { return s == "" || s == o.input, o.input }

// A view is what one model needs of a history.
type view struct {
	name  string
	model porcupine.Model
	part  func(o op) string // the name of the object that the call concerns; "" if the model does not need the call
}

func newView[S comparable](name string, step func(S, op) (bool, S), part func(o op) string) view {
	return view{name, porcupine.Model{
		Init: func() any { return *new(S) },
		Step: func(state, input, _ any) (bool, any) {
			o := input.(op)
			ok, next := step(state.(S), o)
			if !ok && o.mayFail() {
				return true, state
			}
			return ok, next
		},
	}, part}
}

var views = []view{
	newView("id", stepID, func(o op) string {
		if o.kind == string(rules.VerbOpen) && !o.existing {
			return fmt.Sprint(o.id)
		}
		return ""
	}),
	newView("task", stepTask, func(o op) string {
		if o.existing {
			return ""
		}
		return o.input
	}),
	newView("unique key", stepKey, func(o op) string {
		if o.kind == kindRead || o.kind == kindRenew || o.kind == kindGone || o.refused && o.holder == 0 {
			return ""
		}
		return o.key
	}),
	newView("limit", stepLimit, func(o op) string {
		leaves := o.from == task.Running && o.kind != kindRenew
		if !o.refused && (leaves || o.kind == kindUse || o.kind == string(rules.VerbClaim)) {
			return o.limit
		}
		return ""
	}),
}

// longestCheck bounds the search for an order of calls. Histories are so small that the search needs milliseconds.
const longestCheck = 5 * time.Minute

// violations returns a text for each object whose calls have no order that explains their answers.
func violations(t *testing.T, ops []op) (all []string) {
	for _, v := range views {
		parts := map[string][]porcupine.Operation{}
		for _, o := range ops {
			if part := v.part(o); part != "" {
				parts[part] = append(parts[part], porcupine.Operation{Input: o, Call: o.call, Return: o.ends})
			}
		}
		for part, of := range parts {
			switch porcupine.CheckOperationsTimeout(v.model, of, longestCheck) {
			case porcupine.Unknown:
				t.Fatalf("the check of %s %s, with %d calls, took more than %v: make histories smaller", v.name, part,
					len(of), longestCheck)
			case porcupine.Illegal:
				all = append(all, describe(v.name, part, of))
			}
		}
	}
	slices.Sort(all)
	return all
}

func describe(name, part string, of []porcupine.Operation) string {
	slices.SortFunc(of, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	lines := []string{fmt.Sprintf("no order of these calls explains the answers about %s %s:", name, part)}
	for _, o := range of {
		lines = append(lines, o.Input.(op).String())
	}
	return strings.Join(lines, "\n")
}
