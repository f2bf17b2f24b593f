package look

import (
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
)

// watchWarnings prints the causes that keep tasks from finishing. It prints each cause once.
type watchWarnings struct {
	say      func(format string, args ...any)
	campaign string
	printed  []string // keys of the warnings that were printed
}

// check prints new warnings.
func (w *watchWarnings) check(s *admin.Status) {
	if s.Counts.Unfinished() == 0 {
		return
	}
	for _, o := range s.Obstacles {
		w.onceFor(string(o.Code)+" "+o.About, o.Text+"; "+cli.WithCommands(o.Fix, "")) // the text may contain times
	}
	for _, p := range s.Pauses {
		remedy := "repair the hosts or the source: then the tasks go on by themselves"
		if w.campaign != "" {
			remedy += "; tdf cancel --campaign " + cli.ShellWord(w.campaign) + " --state open cancels the open tasks"
		}
		w.onceFor(fmt.Sprint("hold of ", p.Program, p.Source), p.Text(s.At)+"; "+remedy)
	}
}

func (w *watchWarnings) once(text string) { w.onceFor(text, text) }

// maxPrinted limits the number of keys that a watchWarnings remembers, because tdf watch may run for weeks.
const maxPrinted = 1000

func (w *watchWarnings) onceFor(key, text string) {
	if slices.Contains(w.printed, key) {
		return
	}
	w.printed = append(w.printed, key)
	w.printed = w.printed[max(0, len(w.printed)-maxPrinted):]
	w.say("%s", text)
}
