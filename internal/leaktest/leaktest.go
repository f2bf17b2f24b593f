// Package leaktest fails the tests of a package if goroutines still run after them.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout is the maximum time for goroutines to end after the tests. It is long, because on a busy machine goroutines
// need more than goleak's half second.
const timeout = 30 * time.Second

// M runs a package's tests like [testing.M], and fails if a goroutine still runs afterwards. It ignores the goroutines
// that supervise a Redis of package redistest, because tests share a Redis until the process ends.
type M struct {
	*testing.M
	End func() // is called after the tests; may be nil
}

// Run runs the tests and returns the exit status of the test program.
func (m M) Run() int {
	status := m.M.Run()
	if m.End != nil {
		m.End()
	}
	if status != 0 {
		return status
	}
	if err := checkGoroutines(timeout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// checkGoroutines returns an error if goroutines still run after the timeout.
func checkGoroutines(timeout time.Duration) error {
	for end := time.Now().Add(timeout); ; {
		err := goleak.Find(goleak.IgnoreAnyFunction("github.com/tdf-framework/tdf/internal/redistest.(*process).supervise"))
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
