package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Pause says that no worker runs a program, because workers cannot start it (docs/lifecycle.md, "Held programs").
type Pause struct {
	Program string `json:"program"`
	// Until is when a task tries the program.
	Until time.Time `json:"until,omitzero" as:"unix"`
	Why   string    `json:"why"` // the last error that is known, and which workers had it

	Source string `json:"-"` // names the program with its source; see [task.Properties.SourceName]
}

// Text describes the pause in one line. The caller passes the present time of Redis's clock.
func (p *Pause) Text(now time.Time) string {
	next := "a task tries it now"
	if p.Until.After(now) {
		next = "a task tries it at " + p.Until.UTC().Format("15:04:05 MST") + ", in " + span(task.For(p.Until.Sub(now)))
	}
	return fmt.Sprintf("program %s is held, because it cannot be started; %s; the last failure was: %s", p.Program, next,
		p.Why)
}

// HeldPrograms describes the held programs, each in one line.
func (a *Admin) HeldPrograms(ctx context.Context) (texts []string, err error) {
	s, f := a.redis(), fleet{}
	if f.at, err = s.Now(ctx); err != nil {
		return nil, err
	}
	if f.sources, err = s.Limits.HeldSources(ctx); err != nil {
		return nil, err
	}
	for _, p := range f.pauses() {
		texts = append(texts, p.Text(f.at.Std()))
	}
	return texts, nil
}

// pauses returns the held programs.
func (f *fleet) pauses() []Pause {
	pauses := make([]Pause, 0, len(f.sources))
	for _, s := range f.sources {
		why := fmt.Sprintf("%s (workers: %s)", s.Why, joinNames(s.Workers))
		pauses = append(pauses, Pause{Program: s.Program, Until: s.NextTrial().Std(), Why: why, Source: s.Name})
	}
	sortPauses(pauses)
	return pauses
}

func sortPauses(all []Pause) {
	slices.SortFunc(all, func(a, b Pause) int { return strings.Compare(a.Program, b.Program) })
}
