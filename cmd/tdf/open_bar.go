package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressBar returns a progress bar. The total is the number of tasks, or -1 if the number is unknown. The bar is visible only on a
// terminal, and only if the tasks do not fit into one batch.
func (a *app) progressBar(total int64, description string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetVisibility(a.terminal.err && (total < 0 || total > openAtOnce)),
		progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(),
		progressbar.OptionSetRenderBlankState(total > 0), // starts the bar's clock now
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // a spinner would need a goroutine
		progressbar.OptionClearOnFinish(),
	)
}
