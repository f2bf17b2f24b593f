package main

import (
	"slices"

	"github.com/tdf-framework/tdf/manager"
)

// warnings say what keeps tasks from being done to somebody who waits for them, each thing once.
type warnings struct {
	say  func(format string, args ...any)
	told []string
}

func (w *warnings) about(s *manager.Status) {
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
}

func (w *warnings) once(what string) {
	if !slices.Contains(w.told, what) {
		w.told = append(w.told, what)
		w.say("%s", what)
	}
}
