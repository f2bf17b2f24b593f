package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar returns a progress bar of so many steps, -1 for nobody knows how many. It shows where stderr is a terminal, and the
// steps take more than one call.
func (a *app) bar(total int64, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetVisibility(a.style.err && (total < 0 || total > openAtOnce)),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetRenderBlankState(total > 0), // its clock starts now
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would need a goroutine
		progressbar.OptionClearOnFinish(),
	)
}
