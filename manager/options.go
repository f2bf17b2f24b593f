package manager

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
)

// Options configure a manager. Only Namespace is required. Every other field that is zero gets its default.
type Options struct {
	// Redis is the address of Redis, and the user and password. Default: localhost, port 6379, no password.
	Redis tdf.Redis

	// Namespace is the name of the project. All keys of the project in Redis begin with this name.
	Namespace string

	// RoundDuration is the maximum time between the starts of two rounds of Run. If a task finishes, a round starts at
	// once. Default: 1 s.
	RoundDuration time.Duration

	// TaskDefaults sets the properties that a [Definition] does not set.
	TaskDefaults Definition

	// AddRandomStartOffset adds a random time from 0 to 999 ms to the StartAfter of each opened task. So tasks start in
	// random order.
	AddRandomStartOffset bool

	// Log receives the log messages of the manager. Default: text on stderr, from level info up.
	Log *slog.Logger

	// Name is the manager's name in the logs of tasks. Default: "manager".
	Name string

	// Progress is where Run writes its progress. On a terminal, Run rewrites one line. Elsewhere it writes plain lines,
	// at most one every 5 s. Default: no progress.
	Progress io.Writer
}

// LoadOptions reads a configuration file, such as manager.cfg. Environment variables override the file
// (docs/configuration.md). Log writes to stderr with the settings of section [log]. The error is a *[tdf.ConfigError].
func LoadOptions(path string) (Options, error) {
	cfg, err := config.LoadManager(path)
	if err != nil {
		return Options{}, err
	}
	return OptionsOf(cfg), nil
}

// OptionsOf converts a configuration that package config has read.
func OptionsOf(cfg config.Manager) Options {
	o := Options{
		Redis: cfg.Redis, Namespace: cfg.Namespace, RoundDuration: cfg.RoundDuration,
		TaskDefaults: cfg.TaskDefaults.Definition(), AddRandomStartOffset: cfg.AddRandomStartOffset,
		Log: cfg.Log.Logger(os.Stderr),
	}
	if cfg.RoundDuration == 0 { // in Options, the RoundDuration 0 means the default
		o.RoundDuration = leastRound
	}
	return o
}

// inside returns the parts of a manager with these options, without the Store.
func (o Options) inside() (*managing.Manager, error) {
	cfg, err := config.DefaultManager(o.Namespace) // also checks the namespace
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	// Options override the environment variables that DefaultManager reads
	cfg.Namespace, cfg.Redis = o.Namespace, o.Redis
	cfg.Redis.Host = cmp.Or(o.Redis.Host, "localhost")
	cfg.Redis.Port = cmp.Or(o.Redis.Port, 6379)
	cfg.RoundDuration = cmp.Or(max(o.RoundDuration, 0), time.Second)
	cfg.TaskDefaults = o.TaskDefaults.Properties(task.Defaults("", "", ""))
	cfg.AddRandomStartOffset = o.AddRandomStartOffset
	if err := errors.Join(cfg.Redis.CheckHost(), cfg.Redis.CheckNamespace(cfg.Namespace)); err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	of := &managing.Manager{Config: cfg, Log: o.Log, Name: cmp.Or(o.Name, "manager"), Progress: o.Progress}
	if of.Log == nil {
		of.Log = cfg.Log.Logger(os.Stderr)
	}
	return of, nil
}

// Dependencies name what must end before a task runs: Tasks has the ids of tasks, Places name definitions of the same
// call by their places in it, from 0, and Group is a group that must be complete. All of them together are at most
// [task.MaxDependencies].
type Dependencies = tdf.Dependencies

// NoTimeout is a Timeout without a limit.
const NoTimeout = task.Longest

// KeepForever is a KeepFinished, KeepArchived or KeepOutputs without a limit.
const KeepForever = task.Longest

// NoEnd returns the EndBefore of a task that never expires. This time is in the year 5138.
func NoEnd() time.Time { return task.Never.Std() }

// A Definition says which program a task runs, when, and how often it may fail. If a field is zero, the task gets the
// value of [Options].TaskDefaults.
type Definition = tdf.Definition
