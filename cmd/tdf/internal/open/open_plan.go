package open

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// A plan describes the tasks that a call of tdf open will open in one namespace.
type plan struct {
	*opening
	all    *cli.Shards
	m      *cli.Client
	shard  int // the index of the namespace; with --shards N, it gets one of N parts of the rows
	sweep  *rowSource
	packed *program.Packed // nil if the program is stored elsewhere
	base   task.Properties // properties of every task; in a sweep, without input and meta
	rule   string          // warning about fail_on, or ""
	fresh  bool            // this command makes the campaign, and fails if another command opens it meanwhile
	isNew  bool            // the campaign has no tasks yet, so another command must not open it meanwhile

	points sweep.Tally       // counts for each point; with --extend, the counts include the tasks of the campaign
	found  *sweep.Walk       // result of the first walk through all rows; nil if the rows can be read only once
	first  []task.Properties // first few tasks, for --dry-run
}

// plans has a plan for each namespace, in the order of --shards. They are carried out one after the other, and the
// campaign is closed at the end, so that it is not complete before.
type plans []*plan

// prepare completes the plan, and checks as much as possible before the first task is opened.
func (p *plan) prepare(ctx context.Context, tool config.Tool) error {
	if err := p.define(ctx, tool); err != nil {
		return err
	}
	if p.periodic.Schedule != "" { // its tasks may be in a campaign that has tasks
		if p.dryRun {
			return p.countTasks(ctx)
		}
		return nil
	}
	if err := p.checkCampaign(ctx); err != nil {
		return err
	}
	if p.extend && p.sweep.Rows != nil {
		if err := p.readPoints(ctx); err != nil {
			return err
		}
	}
	if p.sweep.isOnce() && p.shards > 1 {
		return cli.Usagef("--shards with rows that can be read only once: write them into a file first")
	}
	if p.sweep.isOnce() && !p.dryRun {
		return nil
	}
	return p.countTasks(ctx)
}

// define sets the properties that all tasks share.
func (p *plan) define(ctx context.Context, tool config.Tool) error {
	p.base = p.m.Define(p.program, p.source, "")
	if p.packed != nil {
		p.base.Program, p.base.Source = p.packed.Name, p.packed.Source
	}
	if p.sweep.Rows == nil {
		p.base.Input = p.input
	}
	if p.campaign != "" {
		p.base.Group = p.campaign
	}
	var err error
	if p.base, err = p.after.Properties(p.base); err != nil {
		return err
	}
	if err := p.after.read(ctx, p.m); err != nil {
		return err
	}
	if p.shards > 1 {
		if err := p.after.checkShard(ctx, p.m); err != nil {
			return err
		}
	}
	p.base.Unique = p.unique
	if p.changed("unique-until") {
		p.base.UniqueUntil = task.UniqueUntil(p.uniqueUntil)
	}
	properties, err := p.task.Read(ctx, p.m)
	if err != nil {
		return err
	}
	if p.base = properties.Apply(p.base); properties.EndBefore == nil && p.base.EndBefore < task.Never {
		if err := p.checkUsualEnd(ctx); err != nil {
			return err
		}
	}
	p.base.FailOn, p.rule = p.failOn(tool)
	if err := p.base.Validate(); err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

// checkUsualEnd returns an error if the configuration sets an end_before in the past.
func (p *plan) checkUsualEnd(ctx context.Context) error {
	now, err := p.m.RedisTime(ctx)
	if err != nil {
		return err
	}
	return cli.CheckEnd(fmt.Sprintf("[task_defaults] end_before=%v", p.base.EndBefore), p.base.EndBefore, now)
}

// sayRules prints the defaults that may surprise the user.
func (p *plan) sayRules() {
	if p.sweep.Rows != nil && p.sweep.input == nil {
		p.a.Say("no --input: run.sh gets all parameters in their order")
	}
	if p.rule != "" {
		p.a.Say("%s", p.rule)
	}
}

// checkCampaign makes up a name if a sweep has no campaign. Without --extend, it refuses a campaign that has tasks. It
// does not refuse a task with a unique key, because this task may exist already.
func (p *plan) checkCampaign(ctx context.Context) error {
	isSweep := p.sweep.Rows != nil
	switch {
	case p.extend && p.base.Group == "":
		return cli.Usagef("--extend without a campaign: want --campaign NAME")
	case p.halt > 0 && p.base.Group == "" && !isSweep:
		return cli.Usagef("--halt without a campaign: want --campaign NAME")
	case p.base.Group == "" && isSweep:
		return p.makeUpName(ctx)
	case p.extend || p.unique != "" || p.base.Group == "" || !isSweep && p.campaign == "":
		return nil
	}
	counts, err := p.all.Counts(ctx, p.base.Group)
	if err == nil && counts.Total() > 0 {
		return p.takenError(fmt.Sprintf("has %s (%s)", format.Tasks(counts.Total()), counts))
	}
	p.fresh, p.isNew = true, true
	return err
}

// takenError returns the error for a campaign that has tasks.
func (p *plan) takenError(cause string) error {
	remedy := "--extend adds this task"
	if p.sweep.Rows != nil {
		remedy = "--extend adds the points that the campaign does not have"
	}
	return cli.Usagef("campaign %s %s; %s, or choose another name", p.base.Group, cause, remedy)
}

// makeUpName names a campaign after its program and the time.
func (p *plan) makeUpName(ctx context.Context) error {
	now, err := p.m.RedisTime(ctx)
	if err != nil {
		return err
	}
	stamp := now.Std().Format("-20060102-150405")
	name := strings.ToValidUTF8(p.base.Program[:min(len(p.base.Program), task.MaxName-len(stamp)-len("-999"))], "")
	for n := 1; ; n++ {
		p.base.Group = name + stamp
		if n > 1 {
			p.base.Group += fmt.Sprintf("-%d", n)
		}
		counts, err := p.all.Counts(ctx, p.base.Group)
		if err != nil || counts.Total() == 0 {
			p.fresh, p.isNew = true, true
			return err
		}
	}
}

// readPoints reads the tasks of the campaign in all namespaces, and counts the tasks of each point. From then on, all
// new tasks of the campaign have keys, unless nothing will be opened.
func (p *plan) readPoints(ctx context.Context) error {
	if !p.dryRun {
		err := managing.Of(p.m.Manager).BeginExtension(ctx, p.base.Group)
		p.isNew = errors.Is(err, task.ErrGroupEmpty)
		if err != nil && !p.isNew {
			return err
		}
	}
	p.points = sweep.Tally{}
	without := int64(0)
	for _, m := range p.all.All {
		for meta, err := range m.Admin().Metas(ctx, p.base.Group) {
			if err != nil {
				return err
			}
			point, ok := sweep.PointOf(meta.Text)
			switch {
			case !ok:
				without++
			case p.isOwn(point):
				p.points.Add(point)
			}
		}
	}
	if without > 0 && p.shard == 0 {
		p.a.Say("campaign %s has %s without parameters in the meta; these tasks belong to no point", p.base.Group,
			format.Tasks(without))
	}
	return nil
}

// isOwn reports whether a point belongs to the namespace of the plan.
func (p *plan) isOwn(point sweep.Point) bool {
	return binary.BigEndian.Uint32(point[:])%uint32(p.shards) == uint32(p.shard)
}

// countTasks walks through all rows, and counts the tasks to open. An invalid row is an error.
func (p *plan) countTasks(ctx context.Context) error {
	w := &sweep.Walk{Points: p.points}
	bar := newProgressBar(p.a, -1, "checking")
	defer bar.Clear()
	rows := 0
	for c, err := range p.candidates() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return rowError(err)
		}
		if !p.isOwn(c.Point) {
			continue
		}
		if w.Admits(c.Point) && len(p.first) < dryTasks {
			p.first = append(p.first, c.Task)
		}
		rows++
		if rows%openAtOnce == 0 {
			bar.Add(openAtOnce)
		}
	}
	p.found = w
	return nil
}

// candidates returns a candidate for each row, with all of its dependencies.
func (p *plan) candidates() iter.Seq2[sweep.Candidate, error] {
	return func(yield func(sweep.Candidate, error) bool) {
		for c, err := range p.sweep.candidates(p.base) {
			if err != nil {
				yield(c, err)
				return
			}
			if err := p.after.pair(&c); err != nil {
				yield(c, c.Row.Wrong(err))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func rowError(err error) error {
	if errors.As(err, new(*sweep.RowError)) {
		return cli.Usagef("%v; nothing was opened", err)
	}
	return err
}
