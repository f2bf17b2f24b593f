// Package leaktest fails a package's tests for goroutines that they leave behind.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end: on a busy machine longer than the half second
// that goleak waits.
const patience = 30 * time.Second

// M runs a package's tests like the [testing.M] in it, and fails if they leave a goroutine behind, but for
// those that look after a Redis of package redistest, which one shared by all tests keeps to the end.
type M struct{ *testing.M }

// Run returns the exit status.
func (m M) Run() int {
	status := m.M.Run()
	if status != 0 {
		return status
	}
	if err := left(patience); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func left(patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		err := goleak.Find(goleak.IgnoreAnyFunction("github.com/tdf-framework/tdf/internal/redistest.(*process).supervise"))
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
