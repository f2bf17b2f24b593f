package leaktest

import (
	"os"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestMain(m *testing.M) { os.Exit(M{M: m}.Run()) }

func TestLeft(t *testing.T) {
	expect.NoError(t, checkGoroutines(time.Minute))
	end := make(chan struct{})
	go stray(end)
	expect.Fails(t, checkGoroutines(0), "leaktest.stray")
	time.AfterFunc(time.Second, func() { close(end) }) // later than goleak's own timeout
	expect.NoError(t, checkGoroutines(time.Minute))
}

func stray(end <-chan struct{}) { <-end }
