package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// interrupted ends the tasks after Ctrl-C, and says how to go on.
func (c *campaign) interrupted(ctx context.Context) error {
	ending, release := c.a.Outlive(ctx)
	defer release()
	ended, err := c.giveUp(ending)
	c.mu.Lock()
	defer c.mu.Unlock()
	said := fmt.Sprintf("interrupted: %d of %s finished", c.own.finished, c.totalText())
	rest := "with --joblog FILE, --resume can run only the rest"
	switch {
	case c.detach:
		said = fmt.Sprintf("interrupted: opened %s in campaign %s", format.Tasks(int(c.own.opened)), c.base.Group)
		rest = "cancel: tdf cancel --campaign " + cli.ShellWord(c.base.Group)
	case c.joblog != "":
		rest = "the same command with --resume runs the rest"
	}
	c.a.Say("%s%s; %s", said, ended, rest)
	return errors.Join(context.Cause(ctx), err)
}

// giveUp ends the tasks that have not finished, because this call ends: no one would print their results, and the same
// call may begin anew. With --detach, it leaves them. The text says how many it has cancelled, and what is unknown.
func (c *campaign) giveUp(ctx context.Context) (ended string, err error) {
	err = c.here.stopWorker(c.a.Force)
	if c.here.temporary {
		return "", err
	}
	cancelled, unknown := 0, c.unsure
	if !c.detach {
		ids := c.pending()
		var left int
		cancelled, left = c.cancel(ctx)
		unknown += left
		if c.elsewhere() && cancelled > 0 {
			err = errors.Join(err, c.awaitPrograms(c.a.Unhurried(), ids))
		}
	}
	if c.elsewhere() && !c.detach {
		ended = fmt.Sprintf(", %d cancelled", cancelled)
	}
	if unknown > 0 {
		ended += fmt.Sprintf("; redis did not answer before this call had to end, so %s may still be open or running: "+
			"tdf ls --campaign %s", format.Tasks(unknown), cli.ShellWord(c.base.Group))
	}
	return ended, err
}

// endEarlier cancels the tasks that a killed call has left, because --resume runs their commands again.
func (c *campaign) endEarlier(ctx context.Context) error {
	if !c.resume || c.here.temporary {
		return nil
	}
	var ids []int64
	for g, err := range c.m.AllGroups(ctx, c.run.campaign) {
		if err != nil {
			return err
		}
		if g.Name != c.run.campaign && !strings.HasSuffix(g.Name, c.log.markOfCampaign()) {
			continue
		}
		unfinished := manager.Query{Group: g.Name, States: []task.State{task.Open, task.Running}}
		for t, err := range c.m.List(ctx, unfinished) {
			if err != nil {
				return err
			}
			if t.CorrelationID == c.base.CorrelationID {
				ids = append(ids, t.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	done, err := c.m.Do(ctx, manager.Action{Verb: rules.VerbCancel}, manager.ByIDs(ids...)...)
	c.say("%s of an earlier call with this job log cancelled", format.Tasks(done.Done))
	if err == nil && c.elsewhere() {
		err = c.awaitPrograms(ctx, ids)
	}
	return err
}

// cancel cancels pending tasks in the given states, or in any. It returns how many, and how many it may have cancelled.
func (c *campaign) cancel(ctx context.Context, from ...task.State) (cancelled, unknown int) {
	ids := c.pending()
	result, err := c.m.Do(ctx, manager.Action{Verb: rules.VerbCancel, From: from}, manager.ByIDs(ids...)...)
	if err != nil {
		unknown = len(ids) - result.Done - len(result.Skipped)
		c.a.Say("tdf: cancel the tasks of campaign %s: %v", c.base.Group, err)
	}
	return result.Done, unknown
}

// pending returns the ids of the tasks without a result, ascending.
func (c *campaign) pending() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own.after(0, len(c.own.pending))
}

// awaitPrograms waits until the workers have ended the programs of cancelled tasks, because the next call may write the
// same files. A worker lists what it runs in each heartbeat, and sends one soon after it has ended such a program.
func (c *campaign) awaitPrograms(ctx context.Context, cancelled []int64) error {
	c.say("waiting until the workers have ended the programs; Ctrl-C ends the call at once")
	since, err := c.m.Now(ctx)
	if err != nil {
		return err
	}
	runners := map[string]bool{}
	for t, err := range c.m.List(ctx, manager.Query{IDs: cancelled}) {
		if err != nil {
			return err
		}
		if r := t.LastRun(); r != nil {
			runners[r.Worker] = true
		}
	}
	mayRun := func(w admin.Worker) bool {
		if !runners[w.Name] || !w.Alive {
			return false
		}
		return !w.Seen.After(since) || slices.ContainsFunc(w.Runs, func(id int64) bool {
			_, is := slices.BinarySearch(cancelled, id)
			return is
		})
	}
	for len(runners) > 0 {
		workers, err := c.m.Admin().Workers(ctx)
		if err != nil || !slices.ContainsFunc(workers, mayRun) {
			return err
		}
		err = cli.Sleep(ctx, firstWait)
		if err != nil {
			return err
		}
	}
	return nil
}
