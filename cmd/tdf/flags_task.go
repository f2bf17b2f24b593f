package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// taskFlags holds the flags for properties of tasks, except the program and its input.
type taskFlags struct {
	changed                          func(flag string) bool
	startAfter, endBefore, timeout   string
	maxFails, maxTimeouts, maxLosses int
	backoff, backoffMax              string
	keepFinished, keepArchived       string
	keepOutputs                      string
	backoffFactor                    float64
	meta, failOn                     string
	queue, tags, limitKey            string
	priority                         int
}

var propertyFlags = []string{"start-after", "end-before", "timeout", "max-fails", "max-timeouts", "max-losses", "backoff", "backoff-factor", "backoff-max", "keep-finished", "keep-archived", "keep-outputs", "meta", "fail-on", "queue", "priority", "tags", "limit-key"}

// flags adds the flags to a command.
func (f *taskFlags) flags(c *cobra.Command) {
	flags := c.Flags()
	f.changed = flags.Changed
	flags.StringVar(&f.startAfter, "start-after", "", "`TIME` earliest start: Unix seconds, RFC 3339, or +2h from now")
	flags.StringVar(&f.endBefore, "end-before", "", "`TIME` time at which an unfinished task expires, in a format of --start-after, or inf for never")
	flags.StringVar(&f.timeout, "timeout", "", "`SPAN` maximum run time of a round: 90 (seconds), 90s, 2h, or inf")
	flags.IntVar(&f.maxFails, "max-fails", 0, "`N` number of failed rounds that are allowed")
	flags.IntVar(&f.maxTimeouts, "max-timeouts", 0, "`N` number of timed-out rounds that are allowed")
	flags.IntVar(&f.maxLosses, "max-losses", 0, "`N` number of lost rounds that are allowed")
	flags.StringVar(&f.backoff, "backoff", "", "`SPAN` wait after the first failed or timed-out round: 30 (seconds), 30s, 5m, or 0")
	flags.Float64Var(&f.backoffFactor, "backoff-factor", 0, "`N` factor by which each further wait is longer (default: 2)")
	flags.StringVar(&f.backoffMax, "backoff-max", "", "`SPAN` longest wait (default: 5m)")
	flags.StringVar(&f.keepFinished, "keep-finished", "", "`SPAN` how long the finished task stays in Redis if it is not archived: 3600, 12h, 7d, or inf")
	flags.StringVar(&f.keepArchived, "keep-archived", "", "`SPAN` how long the archived task stays in Redis, or inf")
	flags.StringVar(&f.keepOutputs, "keep-outputs", "", "`SPAN` how long the outputs of the finished task stay in Redis, or inf")
	flags.StringVar(&f.meta, "meta", "", "`TEXT` your own data about the task")
	flags.StringVar(&f.failOn, "fail-on", "", "`RULE` rule by which a round fails: stderr, exit or any")
	flags.StringVar(&f.queue, "queue", "", "`NAME` queue of the task: only workers that serve the queue claim it (default: default)")
	flags.IntVar(&f.priority, "priority", 0, "`N` priority: workers claim tasks with higher priorities first (default: 0)")
	flags.StringVar(&f.tags, "tags", "", "`TAGS` tags that a worker must offer to claim the task: gpu,ssd")
	flags.StringVar(&f.limitKey, "limit-key", "", "`KEY` what the task needs, such as a database: tdf limit sets how many tasks of a key run at once")
}

// check returns an error for invalid flags. It needs no connection to Redis. It accepts times in the past, because
// Redis's clock may differ from the clock of this machine.
func (f *taskFlags) check() error {
	all, err := f.readFixed()
	if err == nil {
		err = f.moments(tdf.At(time.Now()), &all)
	}
	if err != nil {
		return err
	}
	return checkForAnyTask(all)
}

// read returns the changes for the flags that were given.
func (f *taskFlags) read(ctx context.Context, m *client) (manager.Changes, error) {
	all, err := f.readFixed()
	if err != nil || !f.changed("start-after") && !f.changed("end-before") {
		return all, err
	}
	now, err := m.now(ctx)
	if err != nil {
		return all, err
	}
	if err := f.moments(now, &all); err != nil {
		return all, err
	}
	if all.EndBefore != nil {
		err = checkEnd("value "+strconv.Quote(f.endBefore)+" for --end-before", tdf.At(*all.EndBefore), now)
	}
	return all, err
}

// readFixed reads the flags whose meaning does not depend on the current time.
func (f *taskFlags) readFixed() (manager.Changes, error) {
	all := manager.Changes{
		MaxFails: f.number("max-fails", &f.maxFails), MaxTimeouts: f.number("max-timeouts", &f.maxTimeouts), MaxLosses: f.number("max-losses", &f.maxLosses),
		Priority: f.number("priority", &f.priority),
	}
	if f.changed("meta") {
		all.Meta = &f.meta
	}
	if f.changed("fail-on") {
		all.FailOn = (*tdf.FailOn)(&f.failOn)
	}
	if f.changed("queue") {
		all.Queue = &f.queue
	}
	if f.changed("limit-key") {
		all.LimitKey = &f.limitKey
	}
	if f.changed("tags") {
		all.Tags = new(tdf.SplitTags(f.tags))
	}
	if f.changed("backoff-factor") {
		all.BackoffFactor = &f.backoffFactor
	}
	for _, s := range []struct {
		flag, text string
		to         **time.Duration
	}{
		{"timeout", f.timeout, &all.Timeout},
		{"backoff", f.backoff, &all.Backoff},
		{"backoff-max", f.backoffMax, &all.BackoffMax},
		{"keep-finished", f.keepFinished, &all.KeepFinished},
		{"keep-archived", f.keepArchived, &all.KeepArchived},
		{"keep-outputs", f.keepOutputs, &all.KeepOutputs},
	} {
		if !f.changed(s.flag) {
			continue
		}
		span, err := parseSpanFlag(s.flag, s.text)
		if err != nil {
			return all, err
		}
		*s.to = new(span.Std())
	}
	return all, nil
}

// number returns a flag's value, or nil if the flag was not given.
func (f *taskFlags) number(flag string, value *int) *int {
	if f.changed(flag) {
		return value
	}
	return nil
}

// moments reads the flags whose values may be relative to the current time.
func (f *taskFlags) moments(now tdf.Time, all *manager.Changes) error {
	for _, t := range []struct {
		flag, text string
		to         **time.Time
	}{{"start-after", f.startAfter, &all.StartAfter}, {"end-before", f.endBefore, &all.EndBefore}} {
		if !f.changed(t.flag) {
			continue
		}
		at, err := parseTime(t.flag, t.text, now)
		if err != nil {
			return err
		}
		*t.to = new(at.Std())
	}
	if all.StartAfter != nil && all.EndBefore != nil && !all.EndBefore.After(*all.StartAfter) {
		return usage("invalid value %q for --end-before: not after --start-after %s; the task could never run", f.endBefore, f.startAfter)
	}
	return nil
}
