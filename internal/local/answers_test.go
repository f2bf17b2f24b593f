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

// A server, workers and a manager work although a share of the answers that they get are wrong. No component ends, and no
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
			t.Errorf("task %d failed: %s", task.ID, task.Error())
			return nil
		},
	})
	expect.NoError(t, err, succeeded)
	expect.Equal(t, succeeded, n)
	proxy.Resume()
	expect.NoError(t, running.Stop())
}

// wrongAnswers returns a function that replaces one of 20 replies by another reply, which cannot be the answer to the call.
// A second copy of a reply is not among them: in a pipeline, it would answer the next command, and so be a lie. It replaces at
// most 100 replies, because a call of many commands needs many true answers in a row.
func wrongAnswers(random *rand.Rand) func([]byte) []byte {
	left := 100
	return func(reply []byte) []byte {
		if left == 0 || random.IntN(20) > 0 {
			return reply
		}
		left--
		switch kind := random.IntN(6); {
		case kind == 0 && reply[0] != ':': // another number would be a lie, not a wrong answer
			return []byte(":5\r\n")
		case kind == 1:
			return []byte("*-1\r\n")
		case kind == 2:
			return []byte(">2\r\n$1\r\na\r\n$1\r\nb\r\n")
		case kind == 3 && reply[0] != '*': // an empty list would be a lie, too
			return []byte("*0\r\n")
		case kind == 4:
			return []byte("%1073741824\r\n")
		}
		return []byte("*1073741824\r\n")
	}
}
