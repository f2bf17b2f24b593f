package main

import (
	"errors"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/selection"
)

// A lifetime has the flags that override the keys of the same names. A scheduler sets them for each job. nil means that
// a flag is not given.
type lifetime struct{ limit, idle *time.Duration }

func (l *lifetime) flags() []command.Flag {
	return []command.Flag{
		{
			Name: "time-limit", Value: "SPAN", Set: setSpan(&l.limit),
			Usage: "end within this time, such as 3600 or 1h; overrides [worker] time_limit",
		},
		{
			Name: "idle-timeout", Value: "SPAN", Set: setSpan(&l.idle),
			Usage: "end after this time without a task; overrides [worker] idle_timeout",
		},
	}
}

func setSpan(to **time.Duration) func(string) error {
	return func(text string) error {
		span, err := selection.Span(text)
		if err != nil || span == tdf.Forever {
			return errors.New("want seconds, or a span such as 90s or 2h30m; 0 means no limit")
		}
		d := span.Std()
		*to = &d
		return nil
	}
}

func (l *lifetime) apply(cfg *config.Worker) {
	if l.limit != nil {
		cfg.TimeLimit = *l.limit
	}
	if l.idle != nil {
		cfg.IdleTimeout = *l.idle
	}
}

// locate names the flag, the variable or the file that contains an invalid value.
func (l *lifetime) locate(invalid *config.Error, file string) {
	if invalid.Key != "time_limit" || l.limit == nil {
		invalid.Locate(file)
		return
	}
	invalid.Source, invalid.Section, invalid.Key = "--time-limit", "", ""
}
