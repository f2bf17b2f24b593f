package local

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// A server, workers and a manager work although a share of the answers that they get are unreadable. No component ends, and no
// task fails.
func TestWrongAnswers(t *testing.T) {
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("TDF_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("TDF_SEED=%d makes the same wrong answers", seed)
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	proxy.Alter(wrongAnswers(rand.New(rand.NewPCG(seed, 0))))
	space := testspace.Config(t, proxy.Addr)
	cfg := configured(t, space.Redis, 2)
	cfg.Server.Namespace, cfg.Worker.Namespace, cfg.Worker.Concurrency = space.Namespace, space.Namespace, 2
	running := expect.Result(Start(t.Context(), cfg)).Value(t)
	dir := filepath.Join(running.Directory, "p")
	script := filepath.Join(dir, "run.sh")
	expect.NoError(t, os.Mkdir(dir, 0o755))
	expect.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho $1\n"), 0o755))
	m := testspace.Manager(t, space)
	const n = 30
	var defs []manager.Definition
	for i := range n {
		defs = append(defs, manager.Definition{Program: "p", Source: "rsync:/nowhere/run.sh", Input: strconv.Itoa(i), Group: "g"})
	}
	expect.Result(m.Open(t.Context(), defs...)).OK(t)
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	go func() {
		select {
		case err := <-running.Failed():
			end(err)
		case <-ctx.Done():
		}
	}()
	succeeded := 0
	err := m.Run(ctx, manager.Callbacks{
		Groups: []string{"g"},
		Succeeded: func(_ context.Context, task *manager.Finished) error {
			succeeded++
			return nil
		},
		Failed: func(_ context.Context, task *manager.Finished) error {
			t.Errorf("task %d failed: %s", task.ID, task.Stderr())
			return nil
		},
	})
	expect.NoError(t, err, succeeded)
	expect.Equal(t, succeeded, n)
	proxy.Resume()
	expect.NoError(t, running.Stop())
}

// wrongAnswers returns a function that replaces one of 20 replies by an unreadable reply. It replaces at most 100 replies,
// because a call of many commands needs many true answers in a row.
func wrongAnswers(random *rand.Rand) func([]byte) []byte {
	left := 100
	return func(reply []byte) []byte {
		if left == 0 || random.IntN(20) > 0 {
			return reply
		}
		left--
		unreadable := []string{">2\r\n$1\r\na\r\n$1\r\nb\r\n", "%1073741824\r\n", "*1073741824\r\n", "$x\r\n"}
		return []byte(unreadable[random.IntN(len(unreadable))])
	}
}
