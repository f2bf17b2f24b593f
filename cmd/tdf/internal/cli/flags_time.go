package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
)

// invalidFlag returns the error for a flag whose text package selection refuses. Any other error stays as it is.
func invalidFlag(flag string, err error) error {
	var invalid *selection.Error
	if errors.As(err, &invalid) {
		return Usagef("invalid value %q for --%s: want %s", invalid.Value, flag, invalid.Want)
	}
	return err
}

// invalidFilter returns the error for an id or a flag of a filter that package selection refuses. Any other error stays
// as it is.
func invalidFilter(err error) error {
	var invalid *selection.Error
	switch {
	case !errors.As(err, &invalid):
		return err
	case invalid.Of == "id" || invalid.Of == "range":
		return fmt.Errorf("%w; use --campaign for a campaign, and --failure for a failure group", err)
	}
	return invalidFlag(strings.ReplaceAll(invalid.Of, "_", "-"), err)
}

// parseTime reads a flag's time: Unix seconds, RFC 3339, inf, or a span from now such as +2h.
func parseTime(flag, text string, now task.Time) (task.Time, error) {
	at, err := selection.Time(text, now)
	return at, invalidFlag(flag, err)
}

// ParseSpanFlag reads the value of a flag that is a span. The rules for properties check its range.
func ParseSpanFlag(flag, text string) (task.Seconds, error) {
	s, err := selection.Span(text)
	return s, invalidFlag(flag, err)
}

// SpanVar adds a flag whose value is a span, with or without a unit, as those of the properties are.
func SpanVar(flags *pflag.FlagSet, to *time.Duration, name string, usual time.Duration, usage string) {
	*to = usual
	flags.Var((*spanValue)(to), name, usage)
}

type spanValue time.Duration

func (v *spanValue) Set(text string) error {
	s, err := selection.Span(text)
	if err != nil || s == task.Forever {
		return errors.New("want seconds, or a span such as 90s or 2h30m")
	}
	*v = spanValue(s.Std())
	return nil
}

func (v *spanValue) String() string { return time.Duration(*v).String() }

func (*spanValue) Type() string { return "duration" }

// CheckEnd returns an error for an end_before in the past, because the task would expire at once. The error contains
// the name of the flag or of the configuration key that sets end_before.
func CheckEnd(name string, at, now task.Time) error {
	if at > now {
		return nil
	}
	return Usagef("invalid %s: in the past, because Redis's clock shows %v; the task would expire at once", name, now)
}
