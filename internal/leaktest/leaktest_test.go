package leaktest

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(M{m}.Run()) }

func TestLeft(t *testing.T) {
	if err := checkGoroutines(time.Minute); err != nil {
		t.Error(err)
	}
	end := make(chan struct{})
	go stray(end)
	if err := checkGoroutines(0); err == nil || !strings.Contains(err.Error(), "leaktest.stray") {
		t.Errorf("got %v", err)
	}
	time.AfterFunc(time.Second, func() { close(end) }) // later than goleak's own timeout
	if err := checkGoroutines(time.Minute); err != nil {
		t.Error(err)
	}
}

func stray(end <-chan struct{}) { <-end }
