// Package expect contains checks that many tests use.
package expect

import (
	"testing"
	"time"
)

// timeout is the maximum time for which a test waits. It is long, because a busy machine may stop a process for some
// seconds.
const timeout = time.Minute

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until ok returns true. After a minute, it ends the test with an error that contains the text state.
func Eventually(t testing.TB, state string, ok func() bool) {
	t.Helper()
	limit := time.Now().Add(timeout)
	for !ok() {
		if time.Now().After(limit) {
			t.Fatal("timed out waiting for: " + state)
		}
		<-time.After(time.Millisecond)
	}
}
