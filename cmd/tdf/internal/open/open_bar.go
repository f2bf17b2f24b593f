package open

import (
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

// newProgressBar returns a progress bar. The total is the number of tasks, or -1 if the number is unknown. The bar is
// visible only on a terminal, and only if the tasks do not fit into one batch.
func newProgressBar(a *cli.App, total int64, description string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.Stderr),
		progressbar.OptionSetVisibility(a.Terminal.Err && (total < 0 || total > openAtOnce)),
		progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(),
		progressbar.OptionSetRenderBlankState(total > 0), // starts the bar's clock now
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // a spinner would need a goroutine
		progressbar.OptionClearOnFinish(),
	)
}
