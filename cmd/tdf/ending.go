package main

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"
)

// Most commands end by themselves soon after a signal. One that computes, or waits where no signal reaches it, such as
// for a pipe that nobody reads, is left behind after one of these times. A reply of Redis under way takes up to 5 s, and who
// waits for one says afterwards what was done.
const (
	usualGrace = 7 * time.Second              // after the first signal, and after a second one
	noLimit    = time.Duration(math.MaxInt64) // of a command that has a limit of its own
)

// execute runs the command and returns its exit status (docs/tdf.md, "Exit status"): also of one that does not end
// after a signal.
func (a *app) execute(stopping context.Context, root *cobra.Command) int {
	ended := make(chan int, 1)
	go func() {
		err := root.ExecuteContext(stopping)
		if err != nil && !a.begun {
			err = notUnderstood(err)
		}
		ended <- a.status(stopping, err)
	}()
	select {
	case status := <-ended:
		return status
	case <-stopping.Done():
		return a.end(ended)
	}
}

// end waits for a command that got a signal.
func (a *app) end(ended <-chan int) int {
	grace := time.NewTimer(time.Duration(a.grace.Load()))
	defer grace.Stop()
	select {
	case status := <-ended:
		return status
	case <-grace.C:
	case <-a.again.Done():
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
	io.WriteString(a.stderr, "tdf: interrupted before it could finish what it was doing\n")
	return statusInterrupted
}
