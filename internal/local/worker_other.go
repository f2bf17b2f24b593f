//go:build !linux

package local

import (
	"fmt"
	"log/slog"
	"runtime"
)

func removeAbandoned(string, *slog.Logger) {}

// newWorker returns an error, because workers run on Linux only.
func (t *TDF) newWorker(name string) error {
	return fmt.Errorf("start worker %s: workers run on Linux, not on %s; let workers on Linux run the tasks", name,
		runtime.GOOS)
}
