package brokertest

import (
	"encoding/json"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// A kind is a kind of worker.
type kind struct {
	name   string
	task   func(*task.Properties) // what the tasks of this kind have
	worker func(*scene, offer) worker
	lacks  map[need]string // what the kind does not have, and why

	api     bool         // its workers are those of package worker, over the API
	longest task.Seconds // the longest lease that its workers may ask for; 0 if they all have the same
}

// A need is something that a row needs, and that some kinds do not have.
type need string

const (
	failures  need = "failures"        // its workers can say that a round has failed
	verdicts  need = "verdicts"        // its workers can say why, with the errors of handlers
	returns   need = "returns"         // its workers can give a task back
	opens     need = "opens"           // its rounds can open tasks
	calls     need = "calls"           // its workers make calls, over connections that can break
	copies    need = "copies"          // the result of a second report is that of the first
	numbers   need = "numbers"         // its claims have numbers, and can be repeated
	names     need = "names"           // its workers have names
	starts    need = "starts"          // each start of a worker is another one
	shared    need = "shared"          // another kind can have the same names
	beats     need = "beats"           // several heartbeats of one worker may be under way
	limits    need = "time limits"     // its workers can say how long they work
	campaigns need = "campaigns"       // its workers can serve one campaign
	tokens    need = "tokens"          // its workers have tokens
	answers   need = "renewals answer" // a renewal says whether the claim holds
)

// An offer is what a worker says about itself.
type offer struct {
	name, queue, campaign string
	lease                 task.Seconds // 0 for the usual one
	timeLimit             task.Seconds // 0 for none
	host                  string
}

// A worker is one start of a worker.
type worker interface {
	// register takes the worker's name. It returns why not, or "".
	register() string
	// claim claims a task and begins its round. It returns nil if there is none.
	claim() round
	// beat sends a heartbeat, and returns whether the name still belongs to the worker.
	beat() bool
	// signOff ends the worker, which frees its name.
	signOff()
}

// A caller is a worker that makes calls. It may go before it has got the answer to a claim.
type caller interface{ claimAndGo(leaving) }

// A round is the run of a task.
type round interface {
	id() int64
	// renew renews the lease, and returns whether the claim holds, by the answer to the worker.
	renew() bool
	// report ends the round.
	report(ending) answer
}

// An ending says how a round ends: it succeeds, unless something else is set.
type ending struct {
	fails     string // why it fails
	permanent bool   // for good
	unfit     bool   // because of its worker
	later     task.Seconds
	returned  bool // the worker gives it back
	result    string
	opens     []task.Definition
	waits     bool // for its end: the worker gets the order to end it
}

// An answer is the answer to the report of a worker.
type answer string

const (
	accepted         answer = "accepted"
	acceptedAsFailed answer = "accepted, but the round has failed"
	refused          answer = "refused: the task is no longer the worker's"
	invalid          answer = "invalid: nothing was done"
)

func split(t testing.TB, addr string) (string, int) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	expect.NoError(t, err)
	return host, expect.Result(strconv.Atoi(port)).Value(t)
}

func encode(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// dead is the time after which a silent worker of Taskmaster is dead.
const dead = 5 * time.Minute

// asHTTP means that the kind makes the same calls as the kind HTTP.
const asHTTP = "its calls are those of HTTP"

var kinds = []*kind{
	{name: "handler", worker: newHandler, lacks: map[need]string{
		calls:  "it has no client",
		copies: "a handler ends once", numbers: "its claims have call slots", shared: "no name has a slash",
		beats: "it sends one heartbeat after the other", tokens: "it reaches Redis itself",
	}},
	{
		name: "run.sh", worker: newScript, task: func(d *task.Properties) { d.Source = "rsync:/nowhere/run.sh" },
		lacks: map[need]string{
			verdicts: "a program has an exit status", calls: "it has no client",
			copies: "a program ends once", numbers: "its claims have call slots", shared: "no name has a slash",
			beats: "it sends one heartbeat after the other", tokens: "it reaches Redis itself",
		},
	},
	{name: "HTTP", worker: newRemote, longest: 300},
	{name: "handler over HTTP", worker: newHandler, api: true, longest: 300, lacks: map[need]string{
		calls: asHTTP, copies: "a handler ends once", numbers: asHTTP, shared: asHTTP,
		beats: "it sends one heartbeat after the other",
	}},
	{
		name: "run.sh over HTTP", worker: newScript, api: true, longest: 300,
		task: func(d *task.Properties) { d.Source = "rsync:/nowhere/run.sh" },
		lacks: map[need]string{
			verdicts: "a program has an exit status", calls: asHTTP, copies: "a program ends once", numbers: asHTTP,
			shared: asHTTP, beats: "it sends one heartbeat after the other",
		},
	},
	{
		name: "Taskmaster", worker: newTaskmaster, task: func(d *task.Properties) { d.Program = "taskmaster" },
		lacks: map[need]string{
			verdicts: "a failure has a text only", returns: "there is no such call", opens: "there is no such call",
			copies: "a second report has the status 409", numbers: "claims have no numbers",
			starts: "each start has the same session", campaigns: "there is no such member", limits: "there is no such member",
			answers: "a heartbeat renews all claims, and says nothing about them",
		},
	},
	{name: "Skuld", worker: newSkuld, task: skuldTask, longest: 7 * 24 * 3600, lacks: map[need]string{
		failures: "there is no such call", verdicts: "there is no such call", returns: "there is no such call",
		opens: "there is no such call", numbers: "claims have no numbers", names: "clients have no names",
		starts: "clients have no names", shared: "clients have no names", beats: "clients send none",
		campaigns: "there is no such member", limits: "there is no such member",
	}},
}
