package main

import (
	"errors"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/selection"
)

// overrides are the keys that flags set. A scheduler gives each job its own, beside a file that all of them share.
type overrides []config.Override

func (o *overrides) flags() []command.Flag {
	return []command.Flag{
		o.flag("time-limit", "time_limit", "SPAN", "end within this time, such as 3600 or 8h", seconds),
		o.flag("idle-timeout", "idle_timeout", "SPAN", "end after this time without a task", seconds),
		o.flag("queues", "queues", "QUEUES", "claim the tasks of these queues", nil),
		o.flag("tags", "tags", "TAGS", "offer these tags", nil),
	}
}

// flag returns a flag for a key of [worker]. The function convert, if it is not nil, makes the key's value.
func (o *overrides) flag(name, key, value, usage string, convert func(string) (string, error)) command.Flag {
	set := func(text string) (err error) {
		if convert != nil {
			text, err = convert(text)
		}
		*o = append(*o, config.Override{Section: "worker", Name: key, Value: text, Source: "--" + name})
		return err
	}
	return command.Flag{Name: name, Value: value, Usage: usage + "; overrides [worker] " + key, Set: set}
}

// seconds converts a span to the form that the configuration has.
func seconds(text string) (string, error) {
	span, err := selection.Span(text)
	if err != nil || span == tdf.Forever {
		return "", errors.New("want seconds, or a span such as 90s or 2h30m; 0 means no limit")
	}
	return strconv.FormatFloat(float64(span), 'f', -1, 64), nil
}

// locate sets the source of an error that was found after the configuration was loaded: a flag, the environment or the
// file.
func (o overrides) locate(invalid *config.Error, file string) {
	invalid.Locate(file)
	for _, set := range o {
		if set.Section == invalid.Section && set.Name == invalid.Key {
			invalid.Source = set.Source
		}
	}
}
