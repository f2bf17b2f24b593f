package worker

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"
)

// path returns the path for a file name of the configuration (docs/configuration.md, "[worker]"). A relative name is
// below the working directory.
func (e *execution) path(pattern string) string {
	name := e.fill(pattern)
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(e.s.cfg.Directory, name)
}

// worker returns the name of the worker in the names of the round's files.
func (e *execution) worker() string { return cmp.Or(e.writer, e.s.name) }

// fill replaces the placeholders in a file name of the configuration.
func (e *execution) fill(pattern string) string {
	return strings.NewReplacer(
		"$program", e.task.Program,
		"$worker", e.worker(),
		"$taskId", strconv.FormatInt(e.task.ID, 10),
		"$round", strconv.Itoa(e.task.Round),
	).Replace(pattern)
}
