package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// open are the gates of a task that waits to be run, in the order in which it passes them.
func (c *situation) open() []Gate {
	gates := []Gate{c.definition(), c.serverGate()}
	if c.full {
		gates = append(gates, fullGate)
	}
	gates = append(gates, c.start(), c.end())
	gates = append(gates, c.turn(gates[len(gates)-2].State)...)
	return append(gates, c.source, Gate{"run", Ahead, c.runText(), ""}, Gate{"judgement", Ahead, "the server judges the round", ""})
}

// turn are the queue and the workers. Neither holds a task while something before it does, as far as that passes by itself: who is
// before it and which slots are busy will be another matter by then.
func (c *situation) turn(start GateState) []Gate {
	queue, worker := c.queue(), c.free()
	if start == Holds && c.place.Listed {
		queue = notYet(queue)
	}
	if c.busy() && (start == Holds || queue.State == Holds) {
		worker = notYet(worker)
	}
	return []Gate{queue, worker}
}

func notYet(g Gate) Gate {
	if g.State == Holds {
		g.State, g.Cure = Ahead, ""
	}
	return g
}

// running are those of a task whose program runs.
func (c *situation) running() []Gate {
	return []Gate{
		{"start", Passed, "claimed " + c.since(c.task.Current().Entered[tdf.Running]) + " by " + c.task.Current().Worker, ""},
		c.holder(), c.lease(), c.run(), c.deadline(), c.serverGate(),
		{"judgement", Ahead, "the server judges the round", ""},
	}
}

// executed are those of a task that waits for its judgement.
func (c *situation) executed() []Gate {
	r := c.task.Current()
	if !r.Committed {
		return []Gate{
			{"result", Holds, "the result is not whole: a worker of the original TDF is still writing it, or came too late", "the server's audit mends that; tdf check tells"},
			c.serverGate(),
		}
	}
	return []Gate{{"run", Passed, "ended " + c.since(r.Entered[tdf.Executed]) + ": " + listing.HowExited(r), ""}, c.serverGate()}
}

// finished says how it ended.
func (c *situation) finished() []Gate {
	t := c.task
	ended := Gate{"end", Passed, strings.Join(c.endText(), ": "), ""}
	if listing.Outcome(t) != string(tdf.Succeeded) {
		ended.Cure = fmt.Sprintf("tdf retry %d%s opens it again", t.ID, c.withLaterEnd())
	}
	if t.State == tdf.Archived {
		return []Gate{ended, {"manager", Passed, "archived " + c.since(t.Current().Entered[tdf.Archived]), ""}}
	}
	return []Gate{ended, {"archive", Passed, "not archived: it is kept as it is until somebody does", ""}}
}

// withLaterEnd is what a task has to be opened again with whose end_before is past.
func (c *situation) withLaterEnd() string {
	if c.task.EndBefore <= c.now {
		return " --end-before …"
	}
	return ""
}

// endText says how the task ended, in which way, and what was printed last; nothing twice.
func (c *situation) endText() []string {
	t := c.task
	ended := strings.ReplaceAll(listing.Outcome(t), "_", " ")
	parts := []string{ended + " " + c.since(t.Current().Entered[listing.EndState(t)])}
	f := listing.LastFailure(t)
	if f == nil || f.Round != t.Round {
		return parts
	}
	for _, part := range []string{without(f.How, ended), without(without(f.Line(), ended), f.How)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// without takes away what a text begins with, where that was said already.
func without(text, said string) string {
	rest, cut := strings.CutPrefix(text, said)
	if !cut || rest != "" && rest[0] != ':' && rest[0] != ' ' {
		return text
	}
	return strings.TrimLeft(rest, ": ")
}

func (c *situation) definition() Gate {
	if c.invalid != nil {
		return Gate{"definition", Holds, "it makes no sense, and the server will fail it: " + c.invalid.Error(), "open one that is right"}
	}
	return Gate{"definition", Passed, "it makes sense", ""}
}

func (c *situation) serverGate() Gate {
	switch silent := c.now.Sub(c.server); {
	case c.server == 0:
		return Gate{"server", Holds, "no server was ever seen in this namespace", "start tdf-server, or tdf up"}
	case silent > friend.ServerPatience:
		return Gate{"server", Holds, fmt.Sprintf("no server has been seen for %s", span(silent)), "start tdf-server, or tdf up"}
	}
	return Gate{"server", Passed, "there is one", ""}
}

var fullGate = Gate{
	"memory", Holds, "Redis is full (maxmemory is reached): workers claim nothing",
	"tdf archive and tdf rm make room, or raise maxmemory",
}

func (c *situation) start() Gate {
	from := max(c.task.StartAfter, c.place.From)
	switch {
	case from >= tdf.Never:
		return Gate{"start", Holds, "it is never to start (start_after is inf)", fmt.Sprintf("tdf set %d --start-after 0", c.task.ID)}
	case c.task.StartAfter > c.now:
		return Gate{"start", Holds, "not before " + c.moment(c.task.StartAfter) + " (start_after)", fmt.Sprintf("wait, or tdf set %d --start-after 0", c.task.ID)}
	case from > c.now:
		return Gate{"start", Holds, "not before " + c.moment(from) + ": it was given back, and waits for a little", "wait"}
	}
	return Gate{"start", Passed, "it may start", ""}
}

func (c *situation) end() Gate {
	switch end := c.task.EndBefore; {
	case end >= tdf.Never:
		return Gate{"end", Passed, "it does not expire", ""}
	case end <= c.now && c.grace.Open > c.now:
		return Gate{"end", Holds, fmt.Sprintf("it had to be executed by %s (end_before), but Redis's clock may be wrong: it does not expire before %s", c.moment(end), c.moment(c.grace.Open)), "wait"}
	case end <= c.now:
		return Gate{"end", Holds, "it had to be executed by " + c.moment(end) + " (end_before), and will expire", fmt.Sprintf("tdf retry %d --end-before … when it has", c.task.ID)}
	default:
		return Gate{"end", Passed, "it has until " + c.moment(end) + " (end_before)", ""}
	}
}

func (c *situation) queue() Gate {
	switch {
	case !c.place.Listed:
		return Gate{"queue", Holds, "it is not in the list of open tasks", "the server's audit puts it there; tdf check tells"}
	case c.place.Ahead == 0:
		return Gate{"queue", Passed, "it is the first", ""}
	}
	behind := Gate{"queue", Passed, fmt.Sprintf("%d are before it", c.place.Ahead), ""}
	if c.place.Ahead == 1 {
		behind.What = "1 is before it"
	}
	if free, slots := c.slots(); slots > 0 && c.place.Ahead >= free {
		behind.State = Holds
		behind.What += fmt.Sprintf("; workers that claim have %d slots in all", slots)
		behind.Cure = "wait, or start more workers"
	}
	return behind
}

// slots counts those of the workers that claim, and how many of these are free.
func (c *situation) slots() (free, all int64) {
	for i := range c.workers {
		if w := &c.workers[i]; w.Alive(c.now) && w.State == "working" && w.Drained == "" {
			all += int64(w.Slots)
			free += int64(max(0, w.Slots-len(w.Runs)))
		}
	}
	return free, all
}

// free says whether there is a worker that could take the task, and if not why each of them cannot.
func (c *situation) free() Gate {
	reasons := map[string][]string{}
	alive := 0
	for i := range c.workers {
		w := &c.workers[i]
		if !w.Alive(c.now) {
			continue
		}
		alive++
		why := c.obstacle(w)
		reasons[why] = append(reasons[why], w.Name)
	}
	if able := reasons[""]; len(able) > 0 {
		return Gate{"worker", Passed, fmt.Sprintf("%d of %d can take it: %s", len(able), alive, some(able)), ""}
	}
	if alive == 0 {
		return Gate{"worker", Holds, "no worker lives", "start tdf-worker, or tdf up; tdf workers --all lists those that were here"}
	}
	gate := Gate{"worker", Holds, fmt.Sprintf("none of the %d can take it", alive), ""}
	var cures []string
	for _, o := range obstacles {
		if names := reasons[o.why]; len(names) > 0 {
			gate.What += "; " + o.why + ": " + some(names)
			cures = append(cures, strings.ReplaceAll(o.cure, workerNames, strings.Join(names[:min(len(names), mostNamed)], " ")))
		}
	}
	gate.Cure = strings.Join(cures, "; ")
	return gate
}

// Why a worker that lives does not take a task, and what would change that.
var obstacles = []struct{ why, cure string }{
	{notOn, "start another worker"},
	{draining, "tdf drain --undo " + workerNames},
	{stopping, "start another worker"},
	{avoiding, "tdf workers says why; each tries a round again within a minute"},
	{busy, "wait, or start more workers"},
}

// workerNames stands for the names of those that it is about.
const workerNames = "WORKER…"

const (
	notOn    = "must not run it (not_on)"
	draining = "told to drain"
	stopping = "starts or stops"
	avoiding = "pauses the program"
	busy     = "has no free slot"
)

func (c *situation) obstacle(w *redisstate.WorkerStatus) string {
	_, _, pauses := w.Pausing(c.task.Program)
	switch {
	case slices.Contains(c.task.NotOn, w.Name):
		return notOn
	case w.Drained != "":
		return draining
	case w.State != "working":
		return stopping
	case pauses:
		return avoiding
	case len(w.Runs) >= w.Slots:
		return busy
	}
	return ""
}

// busy says whether a worker could take the task but for those that it runs.
func (c *situation) busy() bool {
	return slices.ContainsFunc(c.workers, func(w redisstate.WorkerStatus) bool { return w.Alive(c.now) && c.obstacle(&w) == busy })
}

// mostNamed is how many workers are named.
const mostNamed = 5

// some names the first few.
func some(names []string) string {
	if len(names) > mostNamed {
		return strings.Join(names[:mostNamed], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// holder is the worker that has the task.
func (c *situation) holder() Gate {
	name := c.task.Current().Worker
	i := slices.IndexFunc(c.workers, func(w redisstate.WorkerStatus) bool { return w.Name == name })
	if i < 0 && c.task.Current().Claim == "" {
		return Gate{"worker", Passed, fmt.Sprintf("nothing is known of %s: a worker of the original TDF?", name), ""}
	}
	if i < 0 {
		return Gate{"worker", Holds, name + " was not seen in this namespace within a week: was the task loaded from a dump?", "wait: the server opens the task again when its lease is over"}
	}
	w := &c.workers[i]
	if !w.Alive(c.now) {
		return Gate{"worker", Holds, fmt.Sprintf("%s on %s has been silent for %s", name, w.Host, span(c.now.Sub(w.Seen))), "wait: the server opens the task again when its lease is over"}
	}
	return Gate{"worker", Passed, fmt.Sprintf("%s on %s lives", name, w.Host), ""}
}

func (c *situation) lease() Gate {
	t := c.task
	switch {
	case t.Current().Claim == "":
		return Gate{"lease", Passed, "it has none: a worker of the original TDF runs it", ""}
	case t.LeaseUntil > c.now:
		return Gate{"lease", Passed, "until " + c.moment(t.LeaseUntil), ""}
	case c.grace.Running > c.now:
		return Gate{"lease", Holds, fmt.Sprintf("it is over, but Redis was away: nothing is lost before %s", c.moment(c.grace.Running)), "wait"}
	}
	return Gate{"lease", Holds, "it is over: the server loses the round", "wait for the server"}
}

// run tells about the program: how it is doing, and how that compares.
func (c *situation) run() Gate {
	r := c.task.Current()
	what := "claimed " + c.since(r.Entered[tdf.Running])
	switch {
	case r.Started > 0:
		what = "the program began " + c.since(r.Started)
	case r.Claim != "" && r.PID == 0 && r.LastOutput == 0:
		what += "; the program is being fetched, or is about to start"
	}
	if r.LastOutput > 0 {
		what += ", printed something last " + c.since(r.LastOutput)
	} else if r.PID > 0 {
		what += ", and has printed nothing yet"
	}
	if r.Progress != (tdf.Progress{}) {
		what += fmt.Sprintf(", is at %.0f %%", 100*r.Progress.Fraction)
	}
	return Gate{"run", Ahead, what + "; " + c.runText(), ""}
}

// runText says how long rounds of the program take.
func (c *situation) runText() string {
	if n := len(c.took); n > 0 {
		return fmt.Sprintf("others of this program took %s, at most %s (%d rounds)", span(c.took[n/2]), span(c.took[n-1]), n)
	}
	return "the program has to end"
}

func (c *situation) deadline() Gate {
	t := c.task
	switch {
	case t.Deadline == 0 || t.Deadline >= tdf.Never:
		return Gate{"deadline", Passed, "it has none", ""}
	case t.Deadline < c.now && c.grace.Running > c.now:
		return Gate{"deadline", Holds, fmt.Sprintf("it is over, but Redis was away: nothing times out before %s", c.moment(c.grace.Running)), "wait"}
	case t.Deadline < c.now:
		return Gate{"deadline", Passed, "it is over: the round times out", ""}
	}
	return Gate{"deadline", Passed, "it has until " + c.moment(t.Deadline), ""}
}

// since says how long a moment is ago.
func (c *situation) since(t tdf.Time) string {
	if t == 0 {
		return "at an unknown time"
	}
	return span(c.now.Sub(t)) + " ago"
}

// moment names a time, and how far off it is.
func (c *situation) moment(t tdf.Time) string {
	text := t.Std().UTC().Format("2006-01-02 15:04:05 MST")
	if d := t.Sub(c.now); d > 0 {
		return text + ", in " + span(d)
	}
	return text + ", " + c.since(t)
}

// span writes a time as people do.
func span(s tdf.Seconds) string {
	switch s = max(s, 0); {
	case s < 10:
		return fmt.Sprintf("%.1f s", float64(s))
	case s < 120:
		return fmt.Sprintf("%.0f s", float64(s))
	case s < 120*60:
		return fmt.Sprintf("%.0f min", float64(s)/60)
	case s < 48*3600:
		return fmt.Sprintf("%.0f h", float64(s)/3600)
	}
	return fmt.Sprintf("%.0f days", float64(s)/86400)
}
