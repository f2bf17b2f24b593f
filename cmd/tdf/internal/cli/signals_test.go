package cli

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A signal ends tdf even if its command does not notice the end of the context.
func TestSignalsEndACommandThatComputes(t *testing.T) {
	for name, signals := range map[string]int{"one signal": 1, "two signals": 2} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			force, forceEnd := context.WithCancel(t.Context())
			var released atomic.Bool
			var spinning sync.WaitGroup
			defer func() { released.Store(true); spinning.Wait() }()
			var errors strings.Builder
			a := New(Process{Stdout: &strings.Builder{}, Stderr: &errors, Force: force})
			a.grace.Store(1)
			spinning.Add(1)
			root := &cobra.Command{SilenceErrors: true, RunE: func(*cobra.Command, []string) error {
				defer spinning.Done()
				a.look.Store(looks["pause"])
				cancel()
				if signals > 1 {
					forceEnd()
				}
				for !released.Load() {
					runtime.Gosched()
				}
				return nil
			}}
			root.SetArgs(nil)
			expect.Equal(t, a.Execute(ctx, root), StatusInterrupted, "status")
			forceEnd()
			want := "tdf: interrupted before the command had finished\nto see what was done: tdf pause\n"
			expect.Equal(t, errors.String(), want, "stderr")
		})
	}
}

// The second signal at once ends a step that outlives the first one, such as cancelling the tasks of tdf run --shared.
func TestTheSecondSignalEndsAStepThatOutlivesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		force, forceEnd := context.WithCancel(t.Context())
		a := New(Process{Stdout: &strings.Builder{}, Stderr: &strings.Builder{}, Force: force})
		root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, _ []string) error {
			a.parsed = true
			step, release := a.Outlive(c.Context())
			defer release()
			cancel()
			synctest.Wait()
			expect.NoError(t, step.Err(), "after the first signal")
			forceEnd()
			<-step.Done()
			return context.Cause(c.Context())
		}}
		root.SetArgs(nil)
		begun := time.Now()
		expect.Equal(t, a.Execute(ctx, root), StatusInterrupted, "status")
		expect.Equal(t, time.Since(begun), 0, "time since the signals")
	})
}
