package main

import (
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf/admin"
)

// warnings say what keeps tasks from being done to somebody who waits for them, each thing once.
type warnings struct {
	say      func(format string, args ...any)
	campaign string
	stops    bool // the campaign is given up when too much fails
	told     []string
}

func (w *warnings) about(s *admin.Status) {
	if s.Counts.Unfinished() == 0 {
		return
	}
	if s.ServerMissing() {
		w.once("no server is there; no task will be done before one runs: start tdf-server, or tdf up")
	}
	switch {
	case s.Workers == 0:
		w.once("no worker is there; no task will run before one does: start tdf-worker, or tdf up")
	case s.Workers == s.Drained:
		w.once("all workers drain, start or stop; no task will run before one claims again: tdf workers says more")
	}
	for _, p := range s.Pauses {
		w.onceFor(fmt.Sprint("pause of ", p.Program, p.Workers, p.Of), p.Text(s.At)+"; "+w.afterPause())
	}
}

// afterPause says what can be done about a program that fails.
func (w *warnings) afterPause() string {
	name := shellWord(w.campaign)
	switch {
	case w.campaign == "":
		return "tdf failures says what fails"
	case w.stops:
		return fmt.Sprintf("tdf failures --campaign %s says what fails", name)
	}
	return fmt.Sprintf("tdf failures --campaign %s says what fails, and tdf watch %[1]s --stop-after N gives the campaign up when N tasks have failed", name)
}

func (w *warnings) once(what string) { w.onceFor(what, what) }

// mostTold bounds what is remembered: workers may come and go for weeks.
const mostTold = 1000

func (w *warnings) onceFor(key, what string) {
	if slices.Contains(w.told, key) {
		return
	}
	w.told = append(w.told, key)
	w.told = w.told[max(0, len(w.told)-mostTold):]
	w.say("%s", what)
}
