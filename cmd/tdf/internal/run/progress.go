package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
)

// narrow is the width of a terminal whose width is unknown.
const narrow = 80

// Times between two updates of the progress: of the line on a terminal, and of lines in a log.
const (
	lineEvery = 250 * time.Millisecond
	logEvery  = time.Minute
)

// showProgress shows how far the tasks are, until the context ends. The returned function waits for the end.
func (c *campaign) showProgress(ctx context.Context) (wait func()) {
	if c.quiet || !c.a.Terminal.Err && !c.bar {
		return func() {}
	}
	every, show := logEvery, func(text string) { c.a.Say("%s", text) }
	if c.a.Terminal.Err {
		every, show = lineEvery, c.printer.progress
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				show(c.progress())
			case <-ctx.Done():
				c.printer.endProgress()
				if !c.a.Terminal.Err {
					show(c.progress())
				}
				return
			}
		}
	}()
	return func() { <-ended }
}

// progress returns a line that says how far the tasks are.
func (c *campaign) progress() string {
	finished, failed, unfinished, runs := c.counts()
	c.mu.Lock()
	total := c.total()
	c.mu.Unlock()
	parts := []string{fmt.Sprintf("%d finished, reading inputs", finished)}
	if total >= 0 {
		parts[0] = fmt.Sprintf("%d/%d finished", finished, total)
		unfinished = total - finished
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	if sent := c.sentBytes.Load(); sent > 0 {
		parts = append(parts, format.Size(sent)+" sent")
	}
	if total < 0 || unfinished == 0 {
		return strings.Join(parts, ", ")
	}
	if c.here.slots > 0 {
		e := admin.EstimateLeft(unfinished, c.here.slots, runs, finished, time.Since(c.began))
		if e.Unknown == "" {
			parts = append(parts, format.Left(e.Low, e.High))
		}
	}
	line := strings.Join(parts, ", ")
	if !c.a.Terminal.Err {
		return line
	}
	if total > 0 {
		line = bar(finished, total) + " " + line
	}
	return format.OneLine(line, max(c.a.Terminal.Width, narrow)-1)
}

func bar(done, total int64) string {
	const width = 20
	full := int(width * done / total)
	return fmt.Sprintf("%3d%% |%s%s|", 100*done/total, strings.Repeat("█", full), strings.Repeat(" ", width-full))
}
