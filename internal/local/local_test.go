package local

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
)

var eventually = expect.Eventually

func configured(t *testing.T, at config.Redis, workers int) Config {
	t.Helper()
	server := expect.Result(config.DefaultServer("ns")).Value(t)
	worker := expect.Result(config.DefaultWorker("ns")).Value(t)
	server.Redis, worker.Redis = at, at
	worker.Directory, worker.Grace, worker.KillGrace = "", 0, 0
	var log testlog.Buffer
	t.Cleanup(func() { t.Log(log.String()) })
	cfg := Config{Server: server, Worker: worker, Name: "here", Log: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range workers {
		cfg.Workers = append(cfg.Workers, fmt.Sprintf("here-%d", i+1))
	}
	return cfg
}

func start(t *testing.T, cfg Config) (*TDF, *redisstate.Store) {
	t.Helper()
	running := expect.Result(Start(t.Context(), cfg)).Value(t)
	store := expect.Result(redisstate.Connect(t.Context(), cfg.Worker.Redis, "ns", cfg.Log)).Value(t)
	t.Cleanup(func() { store.Close() })
	eventually(t, "all workers work", func() bool {
		workers, err := store.Presence.Workers(t.Context())
		working := 0
		for _, w := range workers {
			if w.State == "working" {
				working++
			}
		}
		return err == nil && working == len(cfg.Workers)
	})
	return running, store
}

// open puts a program into the working directory, and opens tasks of this program.
func open(t *testing.T, running *TDF, store *redisstate.Store, script string, inputs ...string) {
	t.Helper()
	dir := filepath.Join(running.Directory, "p")
	expect.NoError(t, os.Mkdir(dir, 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\n"+script), 0o755))
	for _, input := range inputs {
		expect.Result(store.Open(t.Context(), "test", task.Defaults("p", "rsync:/nowhere/run.sh", input))).OK(t)
	}
}

func counts(t *testing.T, store *redisstate.Store) task.Counts {
	t.Helper()
	return expect.Result(store.Counts(t.Context())).Value(t)
}

// orphaning is a program that leaves an orphan behind. The orphan has its own session and an empty environment, so only
// a cgroup would show that the orphan belongs to the program.
const orphaning = `setsid -f env -i /bin/sh -c 'echo $$ > "$0.new"; mv "$0.new" "$0"; exec /bin/sleep 4242' "$1" </dev/null >/dev/null 2>&1
while [ ! -e "$1" ]; do sleep 0.01; done
sleep 0.05
echo done
`

// The workers kill the orphans that programs leave behind. They do not kill the redis-server.
func TestOrphansAreKilledAndRedisIsNot(t *testing.T) {
	r, at := serve(t, t.TempDir(), "")
	pid := serverPID(t, client(t, at))
	running, store := start(t, configured(t, at, 2))
	dir := t.TempDir()
	var files []string
	for i := range 6 {
		files = append(files, filepath.Join(dir, strconv.Itoa(i)))
	}
	open(t, running, store, orphaning, files...)
	eventually(t, "all tasks have succeeded", func() bool { return counts(t, store)[task.Succeeded] == int64(len(files)) })
	for _, file := range files {
		text := expect.Result(os.ReadFile(file)).Value(t)
		orphan, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		waitForEnd(t, orphan)
	}
	expect.Equal(t, serverPID(t, client(t, at)), pid, "redis-server is process")
	expect.NoError(t, running.Stop())
	expect.Result(os.Stat(running.Directory)).FailsWith(t, os.ErrNotExist, "the temporary directory still exists")
	r.Stop()
	waitForEnd(t, pid)
}

// What a killed TDF has left is removed at the next start: its temporary directory and the processes of its programs. A
// directory whose worker holds its lock stays.
func TestStartRemovesWhatAKilledOneLeft(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	first, _ := start(t, configured(t, embeddedRedis(t), 1))
	killed := filepath.Join(temporary, filepath.Base(first.Directory)+"0")
	rounds := filepath.Join(killed, ".tdf", ".rounds", "w", "p1")
	expect.NoError(t, os.MkdirAll(rounds, 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(rounds, "lock"), nil, 0o600))
	program := exec.Command("sleep", "4242")
	program.Env = []string{"TDF_DIR=" + filepath.Join(rounds, "1")}
	expect.NoError(t, program.Start())
	second, _ := start(t, configured(t, embeddedRedis(t), 1))
	waitForEnd(t, program.Process.Pid)
	expect.Result(os.Stat(killed)).FailsWith(t, os.ErrNotExist)
	expect.Result(os.Stat(first.Directory)).OK(t)
	expect.NoError(t, second.Stop())
	expect.NoError(t, first.Stop())
}

// Two TDFs, each with its own embedded Redis, run independently. Stop keeps a working directory that the
// configuration names.
func TestTwoAtOnce(t *testing.T) {
	for i := range 2 {
		cfg := configured(t, embeddedRedis(t), 2)
		cfg.Worker.Directory = filepath.Join(t.TempDir(), "work")
		running, store := start(t, cfg)
		defer func() {
			err := running.Stop()
			expect.True(t, err == nil, err)
			expect.Result(os.Stat(filepath.Join(cfg.Worker.Directory, "p"))).OK(t)
		}()
		open(t, running, store, "echo $1", strconv.Itoa(i))
		eventually(t, "the task has succeeded", func() bool { return counts(t, store).String() == "succeeded 1" })
	}
}

// StopNow releases the running tasks.
func TestStopNow(t *testing.T) {
	cfg := configured(t, embeddedRedis(t), 1)
	cfg.Worker.Grace = config.Forever
	running, store := start(t, cfg)
	open(t, running, store, "exec sleep 4242", "")
	eventually(t, "the task runs", func() bool { return counts(t, store)[task.Running] == 1 })
	running.StopNow()
	expect.NoError(t, running.Stop())
	expect.Equal(t, counts(t, store)[task.Open], 1, "counts after StopNow")
}

// If a worker cannot be made, Start returns the error. If a worker fails later, the error arrives on the channel that
// Failed returns, and Stop still ends all components.
func TestStartFails(t *testing.T) {
	at := embeddedRedis(t)
	cfg := configured(t, at, 2)
	cfg.Workers[1] = "a/b"
	expect.Result(Start(t.Context(), cfg)).Fails(t, "contains a slash")
	cfg = configured(t, at, 1)
	cfg.Worker.User = "no-such-user"
	running := expect.Result(Start(t.Context(), cfg)).Value(t)
	err := <-running.Failed()
	expect.True(t, errors.As(err, new(*config.Error)), err)
	expect.NoError(t, running.Stop())
}
