package main

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// If tdf gets a signal while it waits for a confirmation, it ends and changes no task.
func TestInterruptedConfirmation(t *testing.T) {
	addr := redistest.Shared(t)
	c := newCall(t, addr)
	expect.MustEqual(t, c.open(nil, "--grid", "a=1..3"), 0, c.err.String())
	keyboard, terminal, err := pty.Open()
	expect.NoError(t, err)
	defer keyboard.Close()
	defer terminal.Close()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() {
		status = c.run(terminal, "cancel", "--all", "--redis", c.addr, "--namespace", c.namespace)
	})
	expect.Eventually(t, "the question", func() bool { return strings.Contains(c.err.String(), "cancel? [y/N]") })
	c.interrupt()
	ended.Wait()
	expect.Equal(t, status, cli.StatusInterrupted)
	expect.Len(t, c.ids(addr), 3, "status", status)
	keyboard.Write([]byte("\n")) // ends the pending read
}

// If a signal ends the command while Redis does not answer, the command says that its last call may have changed tasks.
func TestInterruptedWhileRedisHangs(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	c := newCall(t, proxy.Addr)
	expect.MustEqual(t, c.open(nil, "--grid", "a=1..3"), 0, c.err.String())
	c.reset()
	proxy.DropReplies(1<<30, func(command []string) bool {
		return redistest.Scripts(command) && slices.Contains(command, "cancelled")
	})
	var status int
	var ended sync.WaitGroup
	ended.Go(func() {
		status = c.run(nil, "cancel", "--all", "--yes", "--redis", c.addr, "--namespace", c.namespace)
	})
	expect.Eventually(t, "a lost reply", func() bool { return proxy.Dropped() > 0 })
	proxy.Hang()
	expect.Eventually(t, "a call that hangs", func() bool { return proxy.Held() > 0 })
	c.interrupt()
	ended.Wait()
	expect.Equal(t, status, cli.StatusInterrupted, "status")
	c.check("stderr", c.err.String(), "cancelled: 0, and perhaps more: Redis did not answer")
	proxy.Resume()
}
