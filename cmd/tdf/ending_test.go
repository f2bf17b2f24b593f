package main

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
)

// A command that computes without looking up ends by the first signal, or by the second one.
func TestEveryCommandEndsBySignals(t *testing.T) {
	for name, signals := range map[string]int{"one signal": 1, "two signals": 2} {
		t.Run(name, func(t *testing.T) {
			told, tell := context.WithCancel(t.Context())
			again, tellAgain := context.WithCancel(t.Context())
			var released atomic.Bool
			var spinning sync.WaitGroup
			defer func() { released.Store(true); spinning.Wait() }()
			var errors strings.Builder
			a := newApp(strings.NewReader(""), &strings.Builder{}, &errors)
			a.again = again
			a.grace.Store(1)
			spinning.Add(1)
			root := &cobra.Command{SilenceErrors: true, RunE: func(*cobra.Command, []string) error {
				defer spinning.Done()
				tell()
				if signals > 1 {
					tellAgain()
				}
				for !released.Load() {
					runtime.Gosched()
				}
				return nil
			}}
			root.SetArgs(nil)
			if status := a.execute(told, root); status != statusInterrupted {
				t.Errorf("the status is %d", status)
			}
			tellAgain()
			if want := "tdf: interrupted before it could finish what it was doing\n"; errors.String() != want {
				t.Errorf("it said %q", errors.String())
			}
		})
	}
}
