package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/tdf-framework/tdf/internal/redistest"
)

// If tdf gets a signal while it waits for a confirmation, it ends and changes no task.
func TestInterruptedConfirmation(t *testing.T) {
	addr := redistest.Shared(t)
	c := newCall(t, addr)
	if status := c.open(nil, "--grid", "a=1..3"); status != 0 {
		t.Fatal(c.err.String())
	}
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	defer terminal.Close()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() {
		args := []string{"cancel", "--all", "--redis", c.addr, "--namespace", c.namespace}
		status = run(c.ctx, c.force, args, terminal, &c.out, &c.err)
	})
	wait(t, "the question", func() bool { return strings.Contains(c.err.String(), "cancel? [y/N]") })
	c.interrupt()
	ended.Wait()
	if status != statusInterrupted || len(c.ids(addr)) != 3 {
		t.Errorf("status %d, %d tasks are open", status, len(c.ids(addr)))
	}
	keyboard.Write([]byte("\n")) // ends the pending read
}
