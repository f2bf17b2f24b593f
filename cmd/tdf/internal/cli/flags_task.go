package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// TaskFlags holds the flags for properties of tasks, except the program and its input. They come from
// task.PropertyTable.
type TaskFlags struct {
	changed func(flag string) bool
	Text    map[string]*string // the values, by the names of the flags
}

// propertiesWithFlag returns the rows of the properties that have a flag in open, set and retry.
func propertiesWithFlag() (all []*task.Property) {
	for i := range task.PropertyTable {
		if p := &task.PropertyTable[i]; p.Help != "" {
			all = append(all, p)
		}
	}
	return all
}

// Flags adds the flags to a command.
func (f *TaskFlags) Flags(c *cobra.Command) {
	f.changed, f.Text = c.Flags().Changed, map[string]*string{}
	for _, p := range propertiesWithFlag() {
		f.Text[p.Flag()] = c.Flags().String(p.Flag(), "", p.Help)
		if p.Unit == task.UnitPatterns {
			c.Flags().Lookup(p.Flag()).Value = (*joined)(f.Text[p.Flag()])
		}
	}
}

// joined is the value of a flag that may be repeated. It joins what it gets by commas.
type joined string

func (j *joined) String() string { return string(*j) }
func (*joined) Type() string     { return "string" }

func (j *joined) Set(text string) error {
	if *j != "" {
		text = string(*j) + "," + text
	}
	*j = joined(text)
	return nil
}

// Check returns an error for invalid flags. It needs no connection to Redis. It accepts times in the past, because
// Redis's clock may differ from the clock of this machine.
func (f *TaskFlags) Check() error {
	_, err := f.Changes(task.At(time.Now()))
	return err
}

// Read returns the changes for the flags that were given.
func (f *TaskFlags) Read(ctx context.Context, m *Client) (manager.Changes, error) {
	if !f.changed("start-after") && !f.changed("end-before") {
		return f.Changes(0)
	}
	now, err := m.RedisTime(ctx)
	if err != nil {
		return manager.Changes{}, err
	}
	all, err := f.Changes(now)
	if err == nil && all.EndBefore != nil {
		err = CheckEnd("value "+strconv.Quote(*f.Text["end-before"])+" for --end-before", task.At(*all.EndBefore), now)
	}
	return all, err
}

// Changes returns the changes at the given time, from which times such as +2h count.
func (f *TaskFlags) Changes(now task.Time) (all manager.Changes, err error) {
	for _, p := range propertiesWithFlag() {
		if !f.changed(p.Flag()) {
			continue
		}
		text, err := valueText(p, *f.Text[p.Flag()], now)
		if err != nil {
			return all, err
		}
		if err := p.SetChange(&all, text); err != nil {
			if strings.HasSuffix(err.Error(), " is not "+p.Want) {
				return all, Usagef("invalid value %q for --%s: want %s", *f.Text[p.Flag()], p.Flag(), p.Want)
			}
			return all, Usagef("%v", err) // the reason says more
		}
	}
	if all.StartAfter != nil && all.EndBefore != nil && !all.EndBefore.After(*all.StartAfter) {
		return all, Usagef("invalid value %q for --end-before: not after --start-after %s; the task could never run",
			*f.Text["end-before"], *f.Text["start-after"])
	}
	return all, checkForAnyTask(all)
}

// valueText returns the value of a flag in the form of Redis.
func valueText(p *task.Property, text string, now task.Time) (string, error) {
	switch p.Unit {
	case task.UnitTime:
		at, err := parseTime(p.Flag(), text, now)
		return at.String(), err
	case task.UnitSpan:
		span, err := ParseSpanFlag(p.Flag(), text)
		return span.String(), err
	}
	return text, nil
}
