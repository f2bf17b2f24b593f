package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
)

// taskFlags are the properties of tasks, but for the program and its input.
type taskFlags struct {
	changed                          func(flag string) bool
	startAfter, endBefore, timeout   string
	maxFails, maxTimeouts, maxLosses int
	meta, failOn                     string
}

var propertyFlags = []string{"start-after", "end-before", "timeout", "max-fails", "max-timeouts", "max-losses", "meta", "fail-on"}

func (f *taskFlags) flags(c *cobra.Command) {
	flags := c.Flags()
	f.changed = flags.Changed
	flags.StringVar(&f.startAfter, "start-after", "", "not claimed before this `TIME`: unix seconds, RFC 3339, or +2h from now")
	flags.StringVar(&f.endBefore, "end-before", "", "expired unless executed by this `TIME`, or inf")
	flags.StringVar(&f.timeout, "timeout", "", "how long a round may run: `SECONDS`, 90s, 2h, or inf")
	flags.IntVar(&f.maxFails, "max-fails", 0, "`N` failed rounds are forgiven")
	flags.IntVar(&f.maxTimeouts, "max-timeouts", 0, "`N` timed out rounds are forgiven")
	flags.IntVar(&f.maxLosses, "max-losses", 0, "`N` rounds are forgiven that were lost with their worker")
	flags.StringVar(&f.meta, "meta", "", "data of your own about the task: `TEXT`")
	flags.StringVar(&f.failOn, "fail-on", "", "what makes a round fail: `RULE` stderr, exit or any")
}

// check refuses wrong flags before anything is asked of Redis. Whether a time is past is for Redis's clock to say.
func (f *taskFlags) check() error {
	all, err := f.fixed()
	if err == nil {
		err = f.moments(tdf.At(time.Now()), &all)
	}
	if err != nil {
		return err
	}
	return wrongForAll(all)
}

// read returns what the flags say, as far as they were given.
func (f *taskFlags) read(ctx context.Context, m *client) (tdf.Changes, error) {
	all, err := f.fixed()
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
		err = checkEnd("--end-before "+f.endBefore, *all.EndBefore, now)
	}
	return all, err
}

// fixed reads the flags that mean the same at any time.
func (f *taskFlags) fixed() (tdf.Changes, error) {
	all := tdf.Changes{
		MaxFails: f.number("max-fails", &f.maxFails), MaxTimeouts: f.number("max-timeouts", &f.maxTimeouts), MaxLosses: f.number("max-losses", &f.maxLosses),
	}
	if f.changed("meta") {
		all.Meta = &f.meta
	}
	if f.changed("fail-on") {
		all.FailOn = (*tdf.FailOn)(&f.failOn)
	}
	if f.changed("timeout") {
		timeout, err := parseTimeout(f.timeout)
		if err != nil {
			return all, err
		}
		all.Timeout = &timeout
	}
	return all, nil
}

// number returns a flag's value if it was given, else nil.
func (f *taskFlags) number(flag string, value *int) *int {
	if f.changed(flag) {
		return value
	}
	return nil
}

// moments reads the flags that may say a time from now.
func (f *taskFlags) moments(now tdf.Time, all *tdf.Changes) error {
	for _, t := range []struct {
		flag, text string
		to         **tdf.Time
	}{{"start-after", f.startAfter, &all.StartAfter}, {"end-before", f.endBefore, &all.EndBefore}} {
		if !f.changed(t.flag) {
			continue
		}
		at, err := parseTime(t.flag, t.text, now)
		if err != nil {
			return err
		}
		*t.to = &at
	}
	if all.StartAfter != nil && all.EndBefore != nil && *all.EndBefore <= *all.StartAfter {
		return usage("--end-before %s is not after --start-after %s: it could never run", f.endBefore, f.startAfter)
	}
	return nil
}
