package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tdf-bench-bin")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir, "./cmd/tdf-worker")
	build.Dir, build.Stderr = "..", os.Stderr
	return filepath.Join(dir, "tdf-worker"), build.Run()
})

// tdfWorker measures a tdf-worker with its own Redis. The run time counts from the first claim to the last
// result, by Redis's clock.
func tdfWorker(ctx context.Context, dir string, runs int) (cost, error) {
	binary, err := built()
	if err != nil {
		return cost{}, err
	}
	r, err := redisserver.Start()
	if err != nil {
		return cost{}, err
	}
	defer r.Stop()
	store, err := redisstate.Connect(ctx, config.Redis{Host: "127.0.0.1", Port: r.Port}, "bench", slog.New(slog.DiscardHandler))
	if err != nil {
		return cost{}, err
	}
	defer store.Close()
	tasks := make([]tdf.Properties, runs)
	for i := range tasks {
		tasks[i] = tdf.Defaults("p", "rsync:/srv/p/run.sh", "1")
	}
	if _, err := store.Open(ctx, "bench", tasks...); err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(filepath.Join(dir, "p", "results"))
	stop, err := startWorker(binary, dir, r.Port)
	if err != nil {
		return cost{}, err
	}
	took, err := waitForRuns(ctx, store, int64(runs))
	return cost{took, stop()}, err
}

func startWorker(binary, dir string, port int) (stop func() (cpu time.Duration), err error) {
	file := filepath.Join(dir, "worker.cfg")
	text := fmt.Sprintf("[redis]\nhost=127.0.0.1\nport=%d\n[tdf]\nnamespace=bench\n[worker]\ndirectory=%s\nconcurrency=%d\n[log]\nlevel=warn\n", port, dir, slots)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "bench", file)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() time.Duration {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		return cpuOf(cmd)
	}, nil
}

func waitForRuns(ctx context.Context, store *redisstate.Store, runs int64) (time.Duration, error) {
	for {
		counts, err := store.Counts(ctx)
		if err != nil {
			return 0, err
		}
		if counts[tdf.Executed] == runs {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	first, last := tdf.Never, tdf.Time(0)
	for id := int64(1); id <= runs; id++ {
		stored, err := store.ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			return 0, err
		}
		r := stored.Task.Current()
		if r.Exit != "0" {
			return 0, fmt.Errorf("task %d: exit %q: %s", id, r.Exit, r.Error)
		}
		first, last = min(first, r.Entered[tdf.Running]), max(last, r.Entered[tdf.Executed])
	}
	return last.Sub(first).Std(), nil
}
