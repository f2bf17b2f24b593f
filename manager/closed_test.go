package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// Calls after Close, and calls that ended before Redis answered, say so.
func TestCallsWithoutRedis(t *testing.T) {
	t.Parallel()
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	expect.NoError(t, m.Connect(t.Context()))
	expect.NoError(t, m.Close())
	expect.Result(m.Get(t.Context(), 1)).Fails(t, "the connection was closed")

	log := &logged{}
	away := testspace.Manager(t, testspace.Config(t, redistest.FreeAddr(t)), log.option())
	ctx, end := context.WithCancelCause(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := away.Get(ctx, 1)
		got <- err
	}()
	expect.Eventually(t, "the call waits", func() bool { return log.Count("nothing listens there") > 0 })
	end(context.DeadlineExceeded)
	err := <-got
	expect.FailsWith(t, err, context.DeadlineExceeded)
	expect.Fails(t, err, "connect to redis at 127.0.0.1:")
	expect.Fails(t, err, "nothing listens there (connection refused)")
}

// A Run whose groups have no tasks ends at once, and says why.
func TestRunOfAnEmptyGroup(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	d := define("p", source, "x")
	d.Group = "full"
	expect.Result(tm.Manager.Open(t.Context(), d)).OK(t)
	run(t, tm.Manager, manager.Callbacks{Groups: []string{"empty", "full"}})
	expect.Equal(t, log.Count("groups have no tasks"), 1, log.String())
	expect.Contains(t, log.String(), "groups=empty")
}

// The methods of a Task never panic, and a Task is no error.
func TestZeroTask(t *testing.T) {
	t.Parallel()
	for _, task := range []*manager.Task{{}, {ID: 7, State: tdf.Failed}} {
		expect.Equal(t, task.Output()+task.Stderr()+task.Result(), "")
		expect.True(t, task.LastRun() == nil, task.ID)
		expect.True(t, task.RoundNumber(0) == nil, task.ID)
		expect.Equal(t, task.Ref().ID, task.ID)
		_, isError := any(task).(error)
		expect.True(t, !isError, "a Task is an error")
		expect.NotContains(t, fmt.Sprint(task, &manager.Finished{Task: task}), "PANIC")
		expect.Result(json.Marshal(task)).OK(t)
		expect.Equal(t, task.Stored().ID, task.ID)
	}
}

// A host with a port is refused, and so is a relative path of a socket.
func TestHostOfOptions(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"localhost:6379", "run/redis.sock", "redis://h", "a b"} {
		_, err := manager.New(manager.Options{Namespace: "p", Redis: config.Redis{Host: host}})
		expect.Fails(t, err, "[redis] host")
		expect.Fails(t, err, host)
	}
	for _, host := range []string{"localhost", "::1", "10.0.0.1", "redis.example", "/run/redis.sock"} {
		m := expect.Result(manager.New(manager.Options{Namespace: "p", Redis: config.Redis{Host: host}})).Value(t)
		expect.NoError(t, m.Close())
	}
}

// A manager opens tasks in a Redis that listens on a socket.
func TestSocket(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/redis.sock"
	redistest.Start(t, redistest.Args("--unixsocket", path))
	m := expect.Result(manager.New(manager.Options{Namespace: "p", Redis: config.Redis{Host: path}})).Value(t)
	defer m.Close()
	opened := expect.Result(m.Open(t.Context(), manager.Definition{Program: "p"})).Value(t)
	expect.Equal(t, expect.Result(m.Get(t.Context(), opened[0].ID)).Value(t).State, tdf.Open)
}
