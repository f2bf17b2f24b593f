package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"w", "worker 1", "Wörker-1@host.example", strings.Repeat("x", 200), "-", "$round"} {
		must(t, CheckName(name), name)
	}
	for name, want := range map[string]string{
		"": "is empty", strings.Repeat("x", 201): "201 bytes", "a/b": "slash", ".a": "dot", "..": "dot",
		"a\nb": "control", "\x00": "control", "\xff": "UTF-8",
	} {
		expect.Fails(t, CheckName(name), want, name)
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	for name, c := range map[string]struct {
		change func(*config.Worker)
		want   string
	}{
		"missing directory": {func(c *config.Worker) { c.Directory = "/no/such" }, "[worker] directory: stat /no/such: no such file or directory; expected"},
		"a file":            {func(c *config.Worker) { c.Directory = file }, "not a directory"},
		"one file for both": {func(c *config.Worker) { c.TaskOutputFilename, c.TaskErrorFilename = "a/$round", "a/./$round" }, "[worker] task_error_filename: \"a/./$round\" is the same file as task_output_filename"},
	} {
		cfg, err := config.DefaultWorker("N")
		must(t, err)
		c.change(&cfg)
		_, err = New("w", cfg, withStore(struct{ broker.DirectStore }{}))
		var wrong *config.Error
		expect.MustTrue(t, errors.As(err, &wrong), name, err)
		expect.Contains(t, err.Error(), c.want, name)
	}
	cfg := expect.Result(config.DefaultWorker("N")).Value(t)
	cfg.Directory = "/proc" // a directory in which no user can write
	w := expect.Result(New("w", cfg, withStore(struct{ broker.DirectStore }{}))).Value(t)
	var wrong *config.Error
	err := w.Run(t.Context())
	expect.MustTrue(t, errors.As(err, &wrong), err)
	expect.Contains(t, err.Error(), "[worker] directory: mkdir /proc/.tdf: ")
	expect.Result(New("../w", config.Worker{})).Fails(t, "", "New accepted a name with a slash")
}

func TestPlaceholders(t *testing.T) {
	w := &Worker{name: "$round", cfg: config.Worker{Directory: "/dir"}}
	e := &execution{s: supervisorOf(w), task: &task.Task{ID: 12, Round: 3, Properties: task.Properties{Program: "p$worker"}}}
	for pattern, want := range map[string]string{
		"$program/results/$worker-$taskId-$round.out": "/dir/p$worker/results/$round-12-3.out",
		"$taskId$taskId":  "/dir/1212",
		"/abs/../$round":  "/3",
		"../up/$round/./": "/up/3",
	} {
		expect.Equal(t, e.path(pattern), want, pattern)
	}
}
