package leaktest

import (
	"os"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestMain(m *testing.M) { os.Exit(M{M: m}.Run()) }

func TestLeft(t *testing.T) {
	expect.NoError(t, await(leaked, time.Hour))
	end := make(chan struct{})
	go stray(end)
	expect.Fails(t, await(leaked, 0), "leaktest.stray")
	expect.NoError(t, await(func() error {
		err := leaked()
		if err != nil {
			close(end) // only after the first check
		}
		return err
	}, time.Hour))
}

func stray(end <-chan struct{}) { <-end }
