package cli

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"
)

// Most commands end soon after a signal. A command that computes, or writes to a full pipe, does not notice the signal.
// So tdf exits after usualGrace, even if the command still runs. This time is longer than 5 s, because a command may
// wait 5 s for a last reply of Redis before it prints its results.
const (
	usualGrace = 7 * time.Second              // time after the first signal, and the same time after the second signal
	noLimit    = time.Duration(math.MaxInt64) // for tdf up, which itself limits how long it waits for programs
)

// Execute runs the command and returns its exit status (docs/tdf.md, "Exit status"). It returns even if the command
// does not end after a signal.
func (a *App) Execute(ctx context.Context, root *cobra.Command) int {
	ended := make(chan int, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		if err != nil && !a.parsed {
			err = commandError(err)
		}
		ended <- a.status(ctx, err)
	}()
	select {
	case status := <-ended:
		return status
	case <-ctx.Done():
		return a.awaitEnd(ended)
	}
}

// awaitEnd waits after a signal until the command ends, or until its time limit has passed. It returns the exit status.
func (a *App) awaitEnd(ended <-chan int) int {
	grace := time.NewTimer(time.Duration(a.grace.Load()))
	defer grace.Stop()
	select {
	case status := <-ended:
		return status
	case <-grace.C:
	case <-a.Force.Done():
		last := time.NewTimer(min(usualGrace, time.Duration(a.grace.Load())))
		defer last.Stop()
		select {
		case status := <-ended:
			return status
		case <-last.C:
		}
	}
	if a.grace.Load() == int64(noLimit) {
		return <-ended
	}
	io.WriteString(a.Stderr, "tdf: interrupted before the command had finished\n"+a.toSee())
	return StatusInterrupted
}

// Outlive returns a context for a step that the first signal must not interrupt. The context ends at the second signal,
// or firstAnswer after the first signal.
func (a *App) Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	a.grace.Store(int64(firstAnswer + usualGrace))
	longer, cancel := context.WithCancel(a.Force)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(firstAnswer, cancel) })
	return longer, func() { stop(); cancel() }
}

// Unhurried returns a context for a step that only the second signal may interrupt, however long it takes.
func (a *App) Unhurried() context.Context {
	a.grace.Store(int64(noLimit))
	return a.Force
}

// Sleep waits for a duration. If ctx ends before that, sleep returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
