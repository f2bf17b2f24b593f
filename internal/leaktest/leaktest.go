// Package leaktest fails the tests of a package if goroutines still run after them.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout is the maximum time for goroutines to end after the tests. It is long, because goroutines need much more than
// goleak's half second on a busy machine. It is a limit of its own, because go test -timeout ends with the tests.
const timeout = 5 * time.Minute

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
	if err := await(leaked, timeout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// leaked returns an error if goroutines still run.
func leaked() error {
	return goleak.Find(goleak.IgnoreAnyFunction("github.com/tdf-framework/tdf/internal/redistest.(*process).supervise"))
}

// await calls check until it returns nil, or returns its error after the timeout.
func await(check func() error, timeout time.Duration) error {
	for end := time.Now().Add(timeout); ; {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
