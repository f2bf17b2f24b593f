package main

import (
	"errors"
	"time"

	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
)

// A jobFlags has what the flags set. A scheduler gives each job its own, beside a file that all of them share.
type jobFlags struct {
	keys                   []config.Override
	timeLimit, idleTimeout time.Duration
}

func (f *jobFlags) flags() []command.Flag {
	return []command.Flag{
		span(&f.timeLimit, "time-limit", "end within this time, such as 3600 or 8h"),
		span(&f.idleTimeout, "idle-timeout", "end after this time without a task"),
		f.key("queues", "QUEUES", "claim the tasks of these queues"),
		f.key("tags", "TAGS", "offer these tags"),
	}
}

// key returns a flag for a key of [worker].
func (f *jobFlags) key(name, value, usage string) command.Flag {
	set := func(text string) error {
		f.keys = append(f.keys, config.Override{Section: "worker", Name: name, Value: text, Source: "--" + name})
		return nil
	}
	return command.Flag{Name: name, Value: value, Usage: usage + "; overrides [worker] " + name, Set: set}
}

func span(to *time.Duration, name, usage string) command.Flag {
	set := func(text string) error {
		span, err := selection.Span(text)
		if err != nil || span == task.Forever {
			return errors.New("want seconds, or a span such as 90s or 2h30m; 0 means no limit")
		}
		*to = span.Std()
		return nil
	}
	return command.Flag{Name: name, Value: "SPAN", Usage: usage, Set: set}
}

// locate sets the source of an error that was found after the configuration was loaded: a flag, the environment or the
// file.
func (f *jobFlags) locate(invalid *config.Error, file string) {
	if invalid.Section == "" {
		return // it names its flag
	}
	invalid.Locate(file)
	for _, set := range f.keys {
		if set.Section == invalid.Section && set.Name == invalid.Key {
			invalid.Source = set.Source
		}
	}
}
