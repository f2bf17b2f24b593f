package admin

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// A snapshot holds what Explain, Diagnose and a Watch read of a namespace. Its methods derive Facts from it, without
// Redis. Each Fact is decided here, once: that no server runs, that no worker claims tasks, that a pause or a limit
// holds tasks.
type snapshot struct {
	fleet
	counts   task.Counts // of all groups
	paused   []limits.Pausing
	limits   []task.LimitUse
	settings task.Settings
	invalid  error // the reason why settings in Redis are invalid
	room     task.Memory
}

// readings reads several parts of a snapshot. Most parts need a round trip to Redis, and do not depend on each other,
// so they are read at the same time. It returns the first error.
func readings(all ...func() error) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, read := range all {
		wait.Go(func() { errs[i] = read() })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readRoom reads the settings of the namespace, and the memory of Redis.
func (n *snapshot) readRoom(ctx context.Context, s store) (err error) {
	n.settings, n.invalid, n.room, err = s.Room(ctx)
	return err
}

// noServer returns a Fact if no server is alive.
func (f *fleet) noServer() (Fact, bool) {
	text := "no server was ever seen in this namespace"
	switch silent := f.at.Sub(f.server); {
	case silent <= rules.ServerPatience:
		return Fact{}, false
	case f.server > 0:
		text = "no server has been seen for " + span(silent)
	}
	return Fact{Code: FactNoServer, Text: text + ": executed tasks do not finish", Fix: toStartServer}, true
}

// noWorker returns a Fact if no worker is alive, or if no live worker claims tasks.
func (f *fleet) noWorker() (Fact, bool) {
	switch c := f.count(); {
	case c.alive == 0 && f.original:
		text := "no worker that sends heartbeats is alive: tasks run only if workers of the original TDF do, which " +
			"send none"
		return Fact{Code: FactNoWorker, Text: text, Fix: toStartWorker}, true
	case c.alive == 0:
		return Fact{Code: FactNoWorker, Text: "no worker is alive: nothing runs", Fix: toStartWorker}, true
	case c.claiming > 0:
		return Fact{}, false
	}
	var names []string
	for i := range f.workers {
		if w := &f.workers[i]; w.Alive(f.at) {
			names = append(names, w.Name)
		}
	}
	return Fact{
		Code: FactNoClaims, Text: "all workers drain, start or stop, so no worker claims tasks: " + joinNames(names),
		Fix: fix("resume a worker, or start another one", StepResumeWorker),
	}, true
}

// unserved returns Facts about those requirements whose tasks no live worker may claim. If no worker is alive, noWorker
// says this.
func (f *fleet) unservedOf(requirements []string) (facts []Fact) {
	offers := f.offers()
	if len(offers) == 0 {
		return nil
	}
	for i := range offers {
		offers[i].Group = "" // a requirement has the tasks of all groups
	}
	for _, name := range requirements {
		p, _ := class.ParseRequirement(name)
		if fact, is := unserved(offers, p); is {
			fact.Text = "open tasks wait for another worker: " + fact.Text
			facts = append(facts, fact)
		}
	}
	return facts
}

// pauseFact says who has paused what.
func (f *fleet) pauseFact(p limits.Pausing) Fact {
	return Fact{
		Code: FactPaused, About: p.Text(), Text: fmt.Sprintf("%s: paused by %s, %s ago", p.Text(), p.By,
			span(f.at.Sub(p.Since))), Fix: toEndPause,
	}
}

// pausesOf returns Facts about the pauses that hold tasks with these properties.
func (n *snapshot) pausesOf(all ...task.Properties) (facts []Fact) {
	for _, p := range n.paused {
		for i := range all {
			if _, holds := (task.Paused{p.Pausable}).Holds(&all[i]); holds {
				facts = append(facts, n.pauseFact(p))
				break
			}
		}
	}
	return facts
}

// zeroLimit returns a Fact if a limit lets no task run.
func zeroLimit(u task.LimitUse) (Fact, bool) {
	text := fmt.Sprintf("the limit of key %q is 0", u.Key)
	if u.Waiting > 0 {
		text += ": " + tasksText(u.Waiting)
	}
	return Fact{Code: FactLimitZero, About: u.Key, Text: text, Fix: toRaiseLimit}, u.Limited && u.Limit.StopsAll()
}

// unclosed returns a Fact about groups that tasks wait for, although they are not closed.
func unclosed(groups []string) (Fact, bool) {
	return Fact{
		Code: FactCampaignOpen, About: strings.Join(groups[:min(len(groups), mostNamed)], ","),
		Text: "tasks wait for campaigns that are not closed: " + joinNames(groups), Fix: toClose,
	}, len(groups) > 0
}

// programHeld returns a Fact about a program that is held.
func (f *fleet) programHeld(p *Pause) Fact {
	return Fact{Code: FactProgramPaused, About: p.Program, Text: p.Text(f.at.Std()), Fix: toMakeStart}
}

// memoryWait returns a Fact if new tasks or claims wait for memory.
func (n *snapshot) memoryWait() (Fact, bool) {
	used := fmt.Sprintf("Redis uses %.0f %% of its maxmemory", 100*float64(n.room.Used)/float64(max(1, n.room.Max)))
	switch {
	case n.settings.ClaimsWait(n.room):
		return Fact{Code: FactClaimsWait, Text: used + ": new tasks and claims wait", Fix: toRaiseMemory}, true
	case n.settings.OpensWait(n.room):
		text := fmt.Sprintf("%s: above high_water (%s), new tasks wait", used, n.settings.Value(task.SettingHighWater))
		return Fact{Code: FactOpensWait, Text: text, Fix: toRaiseMemory}, true
	}
	return Fact{}, false
}
