package worker

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A crew keeps a goroutine for each function that ran at the same time as others, but none that a function has ended. After its
// end, it keeps none, however late a function returns: otherwise the bubble does not end.
func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		slow, later := make(chan struct{}), make(chan struct{})
		for range 3 {
			c.do(func() { <-slow })
		}
		c.do(runtime.Goexit)
		close(slow)
		synctest.Wait()
		expect.Equal(t, idle(c), 3, "idle goroutines")
		c.do(func() { <-later })
		synctest.Wait()
		expect.Equal(t, idle(c), 0, "idle goroutines while the only one works")
		c.end()
		close(later)
	})
}

// idle returns how many goroutines of a crew run no function, and ends them.
func idle(c crew) (n int) {
	for {
		select {
		case c.work <- runtime.Goexit:
			n++
		default:
			return n
		}
	}
}
