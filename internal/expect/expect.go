// Package expect has what tests of all packages say again and again.
package expect

import (
	"testing"
	"time"
)

// patience is how long a test waits for a state: a machine may stand still for some seconds, and a test
// that fails waits in vain once.
const patience = time.Minute

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until ok returns true, and ends the test with the name of the state if that takes a minute.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(limit) {
			t.Fatal("did not happen: " + what)
		}
		<-time.After(time.Millisecond)
	}
}
