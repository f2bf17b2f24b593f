package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/opensets"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// open returns the checks of an open task, in the order in which the task must pass them.
func (c *situation) open() []Check {
	checks := []Check{c.definition(), c.serverCheck()}
	if c.settings.ClaimsWait(c.room) {
		fact, _ := c.memoryWait()
		checks = append(checks, blocked("memory", fact))
	}
	for _, fact := range c.pausesOf(c.task.Properties) {
		checks = append(checks, blocked("pause", fact))
	}
	isHeld := c.task.WaitsForLimit()
	for _, p := range c.pauses() {
		if p.Source == c.task.SourceName() {
			checks = append(checks, blocked("program", c.programHeld(&p)))
			isHeld = true
		}
	}
	checks = append(checks, c.limitCheck()...)
	if c.task.Waits() {
		checks = append(checks, c.dependencies())
	}
	start := c.start()
	checks = append(checks, start, c.end())
	if isHeld {
		start.State = Blocked
	}
	checks = append(checks, c.turn(start.State)...)
	return append(checks, c.source, ahead("run", c.runText()), ahead("settle", "the server decides whether it succeeded"))
}

// turn returns the checks of the queue and of the workers. If an earlier check blocks the task, these two checks do not
// block it. The queue and the slots will have changed when the earlier check passes.
func (c *situation) turn(start CheckState) []Check {
	if c.task.Waits() {
		return []Check{notYet(c.freeSlotCheck())}
	}
	queue, worker := c.queue(), c.freeSlotCheck()
	if start == Blocked && c.place.Listed {
		queue = notYet(queue)
	}
	if c.busy() && (start == Blocked || queue.State == Blocked) {
		worker = notYet(worker)
	}
	return []Check{queue, worker}
}

func notYet(c Check) Check {
	if c.State == Blocked {
		c.State, c.Code, c.About, c.Fix = Ahead, "", "", Fix{}
	}
	return c
}

// running returns the checks of a running task, in the order in which they matter.
func (c *situation) running() []Check {
	run := c.run()
	if r := c.task.Current(); r.Prefetched && r.Started == 0 {
		run = ahead("run", "the worker has prefetched the task, and runs it in its next free slot")
	}
	return []Check{
		passed("start", "claimed "+c.agoText(c.task.Current().Entered[task.Running])+" by "+c.task.Current().Worker),
		c.holder(), c.lease(), run, c.deadline(), c.serverCheck(),
		ahead("settle", "the server decides whether it succeeded"),
	}
}

// executed returns the checks of an executed task, in the order in which they matter.
func (c *situation) executed() []Check {
	r := c.task.Current()
	if !r.Committed {
		return []Check{
			blockedBy("result", FactIncomplete, "the result is incomplete: a worker of the original TDF is still "+
				"writing the result, or wrote it too late", fix("wait for the server's audit, which repairs the task",
				StepCheck)),
			c.serverCheck(),
		}
	}
	return []Check{
		passed("run", "ended "+c.agoText(r.Entered[task.Executed])+": "+listing.HowExited(r)),
		c.serverCheck(),
	}
}

// finished returns the checks of a finished task: its outcome, and whether it is archived.
func (c *situation) finished() []Check {
	t := c.task
	ended := passed("end", strings.Join(c.endText(), ": "))
	if listing.Outcome(t) != string(task.Succeeded) {
		ended.Fix = c.retryFix()
	}
	if t.State == task.Archived {
		return []Check{ended, passed("manager", "archived "+c.agoText(t.Current().Entered[task.Archived]))}
	}
	if f := c.callback; f.IsOf(t) {
		line, _, _ := strings.Cut(f.Error, "\n")
		text := fmt.Sprintf("the callback has failed %d times, the last time in %s %s: %s", f.Attempts, f.Manager,
			c.agoText(f.At), line)
		if f.GivenUp {
			return []Check{ended, blockedBy("archive", FactCallbackFailed, text+"; it is not called again",
				fix("correct the manager, and run the callback again", StepRetryCallbacks))}
		}
		return []Check{ended, passed("archive", text)}
	}
	return []Check{ended, passed("archive", "not archived yet")}
}

// retryFix returns the fix for a task that did not succeed. If the end_before of the task is past, a retry needs a
// later end_before, because the retried task would expire at once.
func (c *situation) retryFix() Fix {
	if c.task.OpenUntil() <= c.at {
		return fix("retry the task with a later end_before", StepRetryLater)
	}
	return fix("retry the task", StepRetry)
}

// endText returns up to three texts: the outcome, how the program ended, and the most informative line of stderr. No
// text repeats the words of an earlier text.
func (c *situation) endText() []string {
	t := c.task
	ended := strings.ReplaceAll(listing.Outcome(t), "_", " ")
	parts := []string{ended + " " + c.agoText(t.Current().Entered[listing.EndState(t)])}
	f := listing.LastFailure(t)
	if f == nil || f.Round != t.Round {
		return parts
	}
	for _, part := range []string{cutSaid(f.How, ended), cutSaid(cutSaid(f.Line(""), ended), f.How)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// cutSaid removes the prefix said from text, because an earlier text already contains it.
func cutSaid(text, said string) string {
	rest, cut := strings.CutPrefix(text, said)
	if !cut || rest != "" && rest[0] != ':' && rest[0] != ' ' {
		return text
	}
	return strings.TrimLeft(rest, ": ")
}

func (c *situation) definition() Check {
	if c.wrong != nil {
		return blockedBy("definition", FactInvalid, "the definition is invalid, so the task will fail: "+
			c.wrong.Error(), fix("open a task with a valid definition"))
	}
	return passed("definition", "the definition is valid")
}

func (c *situation) serverCheck() Check {
	if fact, missing := c.noServer(); missing {
		return blocked("server", fact)
	}
	return passed("server", "a server is alive")
}

func (c *situation) start() Check {
	from := max(c.task.StartAfter, c.place.From)
	switch {
	case from >= task.Never:
		return blockedBy("start", FactNeverStarts, "the task never starts (start_after is inf)",
			fix("change the task's start_after", StepChangeStart))
	case c.task.StartAfter > c.at:
		return blockedBy("start", FactStartAfter, "not before "+c.moment(c.task.StartAfter)+" (start_after)",
			toWait.or(fix("change the task's start_after", StepChangeStart)))
	case from > c.at:
		return blockedBy("start", FactBackOff, "not before "+c.moment(from)+
			": the task waits between two rounds, because of its back-off or because a handler put it off", toWait)
	}
	return passed("start", "the task may start")
}

func (c *situation) end() Check {
	end, name, goal := c.task.EndBefore, "end_before", "executed"
	if c.task.ClaimBefore < end {
		end, name, goal = c.task.ClaimBefore, "claim_before", "claimed"
	}
	switch {
	case end >= task.Never:
		return passed("end", "the task does not expire")
	case end <= c.at && c.grace.Open > c.at:
		return blockedBy("end", FactGracePeriod, fmt.Sprintf("%s was %s, but Redis's clock may be wrong: the task "+
			"does not expire before %s", name, c.moment(end), c.moment(c.grace.Open)), toWait)
	case end <= c.at:
		return blockedBy("end", FactExpires, name+" was "+c.moment(end)+": the task will expire",
			fix("when the task has expired, retry it with a later "+name, StepRetryLater))
	default:
		return passed("end", "the task must be "+goal+" by "+c.moment(end)+" ("+name+")")
	}
}

func (c *situation) queue() Check {
	switch {
	case !c.place.Listed:
		return blockedBy("queue", FactUnlisted, "the task is not in the list of open tasks",
			fix("wait for the server's audit, which adds the task to the list", StepCheck))
	case c.place.Ahead+c.place.Higher == 0:
		return passed("queue", "the task is the first in the queue")
	}
	behind := passed("queue", aheadText(c.place))
	if free, slots := c.slots(); slots > 0 && c.place.Ahead+c.place.Higher >= free {
		behind.State, behind.Code = Blocked, FactQueue
		behind.Text += fmt.Sprintf("; the workers that may claim the task have %d slots", slots)
		behind.Fix = toStartWorkers.or(fix("raise the priority of the task", StepRaisePriority))
	}
	return behind
}

// aheadText says how many tasks workers claim before a task, such as "3 tasks are ahead in the queue, 2 of them with a
// higher priority".
func aheadText(q opensets.Position) string {
	text := fmt.Sprintf("%d tasks are ahead in the queue", q.Ahead+q.Higher)
	if q.Ahead+q.Higher == 1 {
		text = "1 task is ahead in the queue"
	}
	switch {
	case q.Higher == 0:
		return text
	case q.Ahead == 0:
		return text + ", with a higher priority"
	}
	return fmt.Sprintf("%s, %d of them with a higher priority", text, q.Higher)
}

// slots counts the slots of the workers that may claim the task: the free slots and all slots. A worker's heartbeat
// says how many of its slots are free.
func (c *situation) slots() (free, all int64) {
	f := c.matching()
	n := f.count()
	return int64(n.free), int64(n.slots)
}

// freeSlotCheck returns a check that lists the workers that can run the task. If no worker can run it, the check lists
// the reasons.
func (c *situation) freeSlotCheck() Check {
	reasons := map[string][]string{}
	alive := 0
	for i := range c.workers {
		w := &c.workers[i]
		if !w.Alive(c.at) {
			continue
		}
		alive++
		why := c.obstacle(w)
		reasons[why] = append(reasons[why], w.Name)
	}
	if able := reasons[""]; len(able) > 0 {
		return passed("worker", fmt.Sprintf("%d of %d workers can run the task: %s", len(able), alive, joinNames(able))+
			c.keptText(able))
	}
	if alive == 0 {
		fact, _ := c.noWorker()
		return blocked("worker", fact)
	}
	if fact, is := unserved(c.offers(), c.task.Requirement()); is {
		return blocked("worker", fact)
	}
	check := blockedBy("worker", FactWorkerRefuses, fmt.Sprintf("none of %d workers can run the task", alive), Fix{})
	var fixes []string
	for _, o := range obstacles {
		if names := reasons[o.why]; len(names) > 0 {
			check.Text += "; " + o.why + ": " + joinNames(names)
			if o.why == full {
				check.Text += c.closestOf(names) + c.keptText(names)
			}
			if o.fix.Text == "" {
				continue
			}
			fixes = append(fixes, strings.ReplaceAll(o.fix.Text, workerNames,
				strings.Join(names[:min(len(names), mostNamed)], " ")))
			check.Fix.Steps = append(check.Fix.Steps, o.fix.Steps...)
		}
	}
	check.Fix.Text = strings.Join(fixes, "; ")
	return check
}

// obstacles lists the reasons why a live worker cannot run a task, and their fixes.
var obstacles = []struct {
	why string
	fix Fix
}{
	{unfit, Fix{}},
	{notOn, fix("start another worker")},
	{draining, fix("resume "+workerNames, StepResumeWorker)},
	{stopping, fix("start another worker")},
	{busy, toStartWorkers},
	{full, toStartWorkers},
}

// workerNames is a placeholder for the names of the workers.
const workerNames = "WORKER…"

const (
	unfit    = "does not offer the task's queue, tags, handler or resources"
	notOn    = "must not run the task (not_on)"
	draining = "ordered to drain"
	stopping = "starts or stops"
	busy     = "has no free slot"
	full     = "has too little free while its tasks run"
)

func (c *situation) obstacle(w *presence.WorkerStatus) string {
	switch {
	case !class.Serves(&w.Offer, c.task.Requirement()):
		return unfit
	case c.task.Refuses(w.Name, c.at):
		return notOn
	case w.Drained != "":
		return draining
	case w.State != presence.WorkerWorking:
		return stopping
	case len(w.Runs) >= w.Slots:
		return busy
	case w.Offer.Resources != nil && class.CapacitiesOf(freeOf(w)).Lacking(c.request()) != nil:
		return full
	}
	return ""
}

// busy reports whether a live worker could run the task if one of its slots, or enough of its resources, were free.
func (c *situation) busy() bool {
	return slices.ContainsFunc(c.workers, func(w presence.WorkerStatus) bool {
		why := c.obstacle(&w)
		return w.Alive(c.at) && (why == busy || why == full)
	})
}

// holder returns the check of the worker that runs the task.
func (c *situation) holder() Check {
	name := c.task.Current().Worker
	i := slices.IndexFunc(c.workers, func(w presence.WorkerStatus) bool { return w.Name == name })
	if i < 0 && c.task.Current().Claim == "" {
		return passed("worker", fmt.Sprintf("%s sends no heartbeats; the worker may belong to the original TDF", name))
	}
	if i < 0 && c.task.Source == "" { // such as a client of the Skuld interface
		return passed("worker",
			name+" sends no heartbeats; the round is lost when the lease runs out")
	}
	if i < 0 {
		return blockedBy("worker", FactSilentWorker, name+" has not been seen in this namespace lately",
			fix("wait until the lease runs out: then the server reopens the task"))
	}
	w := &c.workers[i]
	if !w.Alive(c.at) {
		return blockedBy("worker", FactSilentWorker, fmt.Sprintf("%s on %s has been silent for %s", name, w.Host,
			span(c.at.Sub(w.Seen))), fix("wait until the lease runs out: then the server reopens the task"))
	}
	return passed("worker", fmt.Sprintf("%s on %s is alive", name, w.Host))
}

func (c *situation) lease() Check {
	t := c.task
	switch {
	case t.Current().Claim == "":
		return passed("lease", "the task has no lease: a worker of the original TDF runs it")
	case t.LeaseUntil > c.at:
		return passed("lease", "until "+c.moment(t.LeaseUntil))
	case c.grace.Running > c.at:
		return blockedBy("lease", FactGracePeriod, fmt.Sprintf("the lease ran out, but Redis was away: no task is "+
			"lost before %s", c.moment(c.grace.Running)), toWait)
	}
	return blockedBy("lease", FactLeaseOver, "the lease ran out: the server declares the round lost",
		fix("wait until the server declares the round lost"))
}

// run returns the check of the running program. Its text compares the run time with the run times of earlier rounds of
// the program.
func (c *situation) run() Check {
	r := c.task.Current()
	what := "claimed " + c.agoText(r.Entered[task.Running])
	if r.Started > 0 {
		what = "the program started " + c.agoText(r.Started)
	}
	if r.LastOutput > 0 {
		what += "; the program last printed something " + c.agoText(r.LastOutput)
	} else if r.Claim != "" {
		what += "; the worker has reported no output yet"
	}
	if r.Progress != (task.Progress{}) {
		what += fmt.Sprintf("; its progress is %.0f %%", 100*r.Progress.Fraction)
	}
	return ahead("run", what+"; "+c.runText())
}

// runText says how long successful runs of the program took.
func (c *situation) runText() string {
	if n := len(c.took); n > 0 {
		return fmt.Sprintf("successful runs of this program took %s (median) and at most %s (%d runs)",
			span(c.took[n/2]), span(c.took[n-1]), n)
	}
	return "the program must end"
}

func (c *situation) deadline() Check {
	t := c.task
	switch {
	case t.Deadline == 0 || t.Deadline >= task.Never:
		return passed("deadline", "the round has no deadline")
	case t.Deadline < c.at && c.grace.Running > c.at:
		return blockedBy("deadline", FactGracePeriod, fmt.Sprintf("the deadline has passed, but Redis was away: no "+
			"round times out before %s", c.moment(c.grace.Running)), toWait)
	case t.Deadline < c.at:
		return passed("deadline", "the deadline has passed: the round times out")
	}
	return passed("deadline", "the round times out at "+c.moment(t.Deadline))
}

// agoText returns a text that says how long ago t was.
func (c *situation) agoText(t task.Time) string {
	if t == 0 {
		return "at an unknown time"
	}
	return span(c.at.Sub(t)) + " ago"
}

// moment returns a text with the time t and its distance from now.
func (c *situation) moment(t task.Time) string {
	text := t.Std().UTC().Format("2006-01-02 15:04:05 MST")
	if d := t.Sub(c.at); d > 0 {
		return text + ", in " + span(d)
	}
	return text + ", " + c.agoText(t)
}

// span returns a duration as a text with a suitable unit.
func span(s task.Seconds) string {
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
