package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// A plan is what a tdf open is going to do, and what of it was found to be needed.
type plan struct {
	*opening
	m      *client
	sweep  *rowSource
	packed *program.Packed // nil: the program has a source of its own
	base   tdf.Properties  // of every task, but for input and meta
	rule   string          // what makes a round fail, and who says so
	fresh  bool            // the campaign is new: nobody else may open it meanwhile

	points tally            // what the campaign has is in it with --extend only
	found  *walk            // through all rows; nil: they can be read once only
	first  []tdf.Properties // the first few tasks
}

// prepare finds out everything that may be wrong, as far as that can be done before anything is opened.
func (p *plan) prepare(ctx context.Context, tool config.Tool) error {
	if err := p.define(ctx, tool); err != nil {
		return err
	}
	if err := p.checkCampaign(ctx); err != nil {
		return err
	}
	if p.extend && p.sweep.rows != nil {
		if err := p.readPoints(ctx); err != nil {
			return err
		}
	}
	if p.sweep.once && !p.dryRun {
		return nil
	}
	return p.countTasks(ctx)
}

func (p *plan) define(ctx context.Context, tool config.Tool) error {
	p.base = p.m.define(p.program, p.source, "")
	if p.packed != nil {
		p.base.Program, p.base.Source = p.packed.Name, p.packed.Source
	}
	if p.sweep.rows == nil {
		p.base.Input = p.input
	}
	if p.campaign != "" {
		p.base.Group = p.campaign
	}
	properties, err := p.task.read(ctx, p.m)
	if err != nil {
		return err
	}
	if p.base = properties.Apply(p.base); properties.EndBefore == nil && p.base.EndBefore < tdf.Never {
		if err := p.checkUsualEnd(ctx); err != nil {
			return err
		}
	}
	rule, why := p.failOn(tool)
	p.base.FailOn = tdf.FailOn(rule)
	if err := p.base.Validate(); err != nil {
		return usage("%v", err)
	}
	p.rule = fmt.Sprintf("fail_on is %s: %s", rule, why)
	return nil
}

// checkUsualEnd is about the end_before that the configuration says.
func (p *plan) checkUsualEnd(ctx context.Context) error {
	now, err := p.m.now(ctx)
	if err != nil {
		return err
	}
	return checkEnd(fmt.Sprintf("[task_defaults] end_before: %v", p.base.EndBefore), p.base.EndBefore, now)
}

// sayRules tells what holds for the tasks that nobody has asked for.
func (p *plan) sayRules() {
	if p.sweep.rows != nil && p.sweep.input == nil {
		p.a.say("no --input: each task gets all parameters, in their order")
	}
	p.a.say("%s", p.rule)
}

// checkCampaign sees to it that a sweep has a name, and that nothing is opened a second time.
func (p *plan) checkCampaign(ctx context.Context) error {
	isSweep := p.sweep.rows != nil
	switch {
	case p.extend && p.base.Group == "":
		return usage("--extend needs the campaign: --campaign NAME")
	case p.base.Group == "" && isSweep:
		return p.makeUpName(ctx)
	case p.extend || p.base.Group == "" || !isSweep && p.campaign == "":
		return nil
	}
	counts, err := p.m.Counts(ctx, p.base.Group)
	if err == nil && counts.Total() > 0 {
		return p.taken(fmt.Sprintf("%s already (%s)", counted(counts.Total(), "task"), counts))
	}
	p.fresh = true
	return err
}

// taken refuses a campaign for the tasks that it has.
func (p *plan) taken(tasks string) error {
	how := "--extend opens this one, too; else take another name"
	if p.sweep.rows != nil {
		how = "--extend opens the points that it does not have; else take another name"
	}
	return usage("campaign %s has %s; %s", p.base.Group, tasks, how)
}

// makeUpName names a campaign after its program and the time.
func (p *plan) makeUpName(ctx context.Context) error {
	now, err := p.m.now(ctx)
	if err != nil {
		return err
	}
	stamp := now.Std().Format("-20060102-150405")
	name := strings.ToValidUTF8(p.base.Program[:min(len(p.base.Program), tdf.MaxName-len(stamp)-len("-999"))], "")
	for n := 1; ; n++ {
		p.base.Group = name + stamp
		if n > 1 {
			p.base.Group += fmt.Sprintf("-%d", n)
		}
		counts, err := p.m.Counts(ctx, p.base.Group)
		if err != nil || counts.Total() == 0 {
			p.fresh = true
			return err
		}
	}
}

// readPoints learns what the campaign has.
func (p *plan) readPoints(ctx context.Context) error {
	without := int64(0)
	for meta, err := range p.m.admin().Metas(ctx, p.base.Group) {
		if err != nil {
			return err
		}
		if point, ok := sweep.PointOf(meta); ok {
			t := p.points[point]
			t.has++
			p.points[point] = t
		} else {
			without++
		}
	}
	if without > 0 {
		p.a.say("campaign %s has %s without parameters in their meta, which say nothing about points", p.base.Group, counted(without, "task"))
	}
	return nil
}

// countTasks walks all rows, of which none may be wrong.
func (p *plan) countTasks(ctx context.Context) error {
	w := &walk{points: p.points}
	bar := p.a.bar(-1, "checking")
	defer bar.Clear()
	rows := 0
	for c, err := range p.sweep.candidates(p.base) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return wrongRow(err)
		}
		if w.admits(c.point) && len(p.first) < dryTasks {
			p.first = append(p.first, c.definition)
		}
		if rows++; rows%openAtOnce == 0 {
			bar.Add(openAtOnce)
		}
	}
	p.found = w
	return nil
}

func wrongRow(err error) error {
	if errors.As(err, new(*sweep.RowError)) {
		return usage("%v; nothing was opened", err)
	}
	return err
}

// A tally counts points: how many tasks of each the campaign has, and how many rows of each have come, in
// the first walk and in the second. A point that a sweep has twice is one that the campaign should have twice.
type tally map[sweep.Point]tallied

type tallied struct{ has, first, second int32 }

// A walk is one through all rows.
type walk struct {
	points                  tally
	second                  bool
	admitted, known, double int64
}

// admits says whether a row's task is to be opened.
func (w *walk) admits(point sweep.Point) bool {
	t := w.points[point]
	come := &t.first
	if w.second {
		come = &t.second
	}
	*come++
	w.points[point] = t
	if *come > 1 {
		w.double++
	}
	if *come <= t.has {
		w.known++
		return false
	}
	w.admitted++
	return true
}

// outlive returns a context for what is better finished than broken off: it ends when the user asks for it a
// second time, or some seconds after the first.
func (a *app) outlive(told context.Context) (context.Context, context.CancelFunc) {
	a.grace.Store(int64(patience + usualGrace))
	ctx, cancel := context.WithCancel(a.again)
	stop := context.AfterFunc(told, func() { time.AfterFunc(patience, cancel) })
	return ctx, func() { stop(); cancel() }
}
