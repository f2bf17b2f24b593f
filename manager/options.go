package manager

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
)

// Options configure a manager. Only Namespace is required. Every other field that is zero gets its default.
type Options struct {
	// Redis is the address of Redis, and the user and password. Default: localhost, port 6379, no password.
	Redis config.Redis

	// Namespace is the name of the project. All keys of the project in Redis begin with this name.
	Namespace string

	// RoundDuration is the maximum time between the starts of two rounds of Run. If a task finishes, a round starts at once.
	// Default: 1 s.
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

	// Progress is where Run writes its progress. On a terminal, Run rewrites one line. Elsewhere it writes plain lines, at
	// most one every 5 s. Default: no progress.
	Progress io.Writer
}

// LoadOptions reads a configuration file, such as manager.cfg. Environment variables override the file
// (docs/configuration.md). Log writes to stderr with the settings of section [log]. The error is a *[config.Error].
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
		TaskDefaults: definitionOf(cfg.TaskDefaults), AddRandomStartOffset: cfg.AddRandomStartOffset,
		Log: cfg.Log.Logger(os.Stderr),
	}
	if cfg.RoundDuration == 0 { // in Options, the RoundDuration 0 means the default
		o.RoundDuration = leastRound
	}
	return o
}

// settings are the options with their defaults, in the form that a Manager uses.
type settings struct {
	cfg      config.Manager
	log      *slog.Logger
	name     string
	progress io.Writer
}

func (o Options) settings() (settings, error) {
	cfg, err := config.DefaultManager(o.Namespace) // also checks the namespace
	if err != nil {
		return settings{}, fmt.Errorf("make manager: %w", err)
	}
	cfg.Namespace, cfg.Redis = o.Namespace, o.Redis // Options override the environment variables that DefaultManager reads
	cfg.Redis.Host = cmp.Or(o.Redis.Host, "localhost")
	cfg.Redis.Port = cmp.Or(o.Redis.Port, 6379)
	cfg.RoundDuration = cmp.Or(max(o.RoundDuration, 0), time.Second)
	cfg.TaskDefaults = o.TaskDefaults.properties(tdf.Defaults("", "", ""))
	cfg.AddRandomStartOffset = o.AddRandomStartOffset
	s := settings{cfg: cfg, log: o.Log, name: o.Name, progress: o.Progress}
	if s.log == nil {
		s.log = cfg.Log.Logger(os.Stderr)
	}
	if s.name == "" {
		s.name = "manager"
	}
	return s, nil
}

// Dependencies name what must end before a task runs: Tasks has the ids of tasks, Places name definitions of the same call by
// their places in it, from 0, and Group is a group that must be complete. All of them together are at most
// [tdf.MaxDependencies].
type Dependencies = tdf.Dependencies

// NoTimeout is a Timeout without a limit.
const NoTimeout = tdf.Longest

// KeepForever is a KeepFinished, KeepArchived or KeepOutputs without a limit.
const KeepForever = tdf.Longest

// NoEnd returns the EndBefore of a task that never expires. This time is in the year 5138.
func NoEnd() time.Time { return tdf.Never.Std() }

// A Definition says which program a task runs, when, and how often it may fail. If a field is zero, the task gets the
// value of [Options].TaskDefaults. If that value is zero too, it gets the default below (docs/lifecycle.md).
type Definition struct {
	Program string `json:"program"`             // the program's name; the worker uses it as the name of a directory
	Source  string `json:"source" only:"whole"` // where workers get the program (docs/programs.md); "" if handlers of workers run it
	Input   string `json:"input,omitempty"`     // the arguments of run.sh; the worker splits them into words as a POSIX shell does

	// Queue, Priority and Tags decide which workers claim the task, and in which order (docs/lifecycle.md, "Queues"). Only a
	// worker that serves the queue and offers all of the tags claims it. Higher priorities come first. Nil means the default
	// priority, 0. Default: no queue and no tags.
	Queue    string   `json:"queue,omitempty"`
	Priority *int     `json:"priority,omitempty"`
	Tags     []string `json:"tags,omitempty"`

	// LimitKey names what the task needs, such as a database. A user can limit how many tasks of a key run at once, and how often
	// one of them starts (docs/lifecycle.md, "Limits per key"). Default: no key.
	LimitKey string `json:"limit_key,omitempty"`
	// After names tasks that must succeed before the task runs. AfterAny names tasks that must end before it runs, with any
	// outcome (docs/lifecycle.md, "Dependencies"). Default: the task waits for nothing.
	After    *Dependencies `json:"after,omitempty" only:"whole"`
	AfterAny *Dependencies `json:"after_any,omitempty" only:"whole"`

	// Group is the name of the group that the task belongs to, such as a stage or a campaign. Default: no group.
	Group string `json:"campaign,omitempty"`

	// Meta is the manager's own data about the task, up to 4 KiB. Default: no data.
	Meta string `json:"meta,omitempty"`

	// StartAfter is the time before which no worker claims the task. Default: the task can be claimed at once.
	StartAfter time.Time `json:"start_after,omitzero" only:"whole"`

	// EndBefore is the time at which the task expires if it has not been executed before. Default: NoEnd().
	EndBefore time.Time `json:"end_before,omitzero" only:"whole"`

	// Timeout is the maximum run time of a round. Default: NoTimeout.
	Timeout time.Duration `json:"timeout,omitempty" only:"whole"`

	// FailOn is the condition under which a round fails. Default: tdf.FailOnStderr.
	FailOn tdf.FailOn `json:"fail_on" only:"whole"`

	// MaxFails, MaxTimeouts and MaxLosses are how often the task runs again after a failed, timed out or lost round. Nil
	// means the default: 0, 0 and 3. For example, new(2) allows two more rounds.
	MaxFails    *int `json:"max_fails" only:"whole"`
	MaxTimeouts *int `json:"max_timeouts" only:"whole"`
	MaxLosses   *int `json:"max_losses" only:"whole"`

	// Backoff is how long the task waits before it runs again after a failed or timed out round. Each further wait is
	// BackoffFactor times as long, but about BackoffMax at the most. Waits vary by up to 20 %. Defaults: 0, which means no
	// wait; 2; and 5 minutes.
	Backoff       *time.Duration `json:"backoff" only:"whole"`
	BackoffFactor float64        `json:"backoff_factor" only:"whole"`
	BackoffMax    time.Duration  `json:"backoff_max" only:"whole"`

	// Unique is a key that only one task holds at a time. If a task holds it, Open returns that task. UniqueUntil says how
	// long a task holds its key. Defaults: no key; tdf.UntilFinished.
	Unique      string          `json:"unique,omitempty" only:"whole"`
	UniqueUntil tdf.UniqueUntil `json:"unique_until" only:"whole"`

	// KeepFinished and KeepArchived are how long the task stays in Redis after it has finished, and after it was archived.
	// Then the server removes it. Default: KeepForever. KeepFinished must be above 0.
	KeepFinished *time.Duration `json:"keep_finished" only:"whole"`
	KeepArchived *time.Duration `json:"keep_archived" only:"whole"`

	// KeepOutputs is how long the outputs of the finished task stay in Redis. Then the server removes them, and the rest of
	// the task stays. Default: KeepForever. It must be above 0.
	KeepOutputs *time.Duration `json:"keep_outputs" only:"whole"`
}

// properties returns the properties of a task. They have the values of d. If a field of d is zero, the property has its
// value in defaults.
func (d Definition) properties(defaults tdf.Properties) tdf.Properties {
	p := defaults
	override(&p.Program, d.Program)
	override(&p.Source, d.Source)
	override(&p.Input, d.Input)
	override(&p.After, d.After)
	override(&p.AfterAny, d.AfterAny)
	override(&p.Queue, d.Queue)
	set(&p.Priority, d.Priority)
	if d.Tags != nil {
		p.Tags = d.Tags
	}
	override(&p.LimitKey, d.LimitKey)
	override(&p.Group, d.Group)
	override(&p.Meta, d.Meta)
	override(&p.StartAfter, tdf.At(d.StartAfter))
	override(&p.EndBefore, tdf.At(d.EndBefore))
	override(&p.Timeout, tdf.For(d.Timeout))
	override(&p.FailOn, d.FailOn)
	override(&p.Unique, d.Unique)
	override(&p.UniqueUntil, d.UniqueUntil)
	override(&p.BackoffFactor, d.BackoffFactor)
	override(&p.BackoffMax, tdf.For(d.BackoffMax))
	set(&p.MaxFails, d.MaxFails)
	set(&p.MaxTimeouts, d.MaxTimeouts)
	set(&p.MaxLosses, d.MaxLosses)
	set(&p.KeepFinished, mapped(d.KeepFinished, tdf.For))
	set(&p.KeepArchived, mapped(d.KeepArchived, tdf.For))
	set(&p.KeepOutputs, mapped(d.KeepOutputs, tdf.For))
	set(&p.Backoff, mapped(d.Backoff, tdf.For))
	return p
}

func override[T comparable](property *T, value T) {
	if value != *new(T) {
		*property = value
	}
}

func set[T any](property, value *T) {
	if value != nil {
		*property = *value
	}
}

// definitionOf returns a definition with these properties. If a property is empty or 0, its field in the definition is
// zero. If a manager opens a task with the definition, the manager's default replaces this zero.
func definitionOf(p tdf.Properties) Definition {
	return Definition{
		Program: p.Program, Source: p.Source, Input: p.Input, Group: p.Group, Meta: p.Meta,
		StartAfter: p.StartAfter.Std(), EndBefore: p.EndBefore.Std(), Timeout: p.Timeout.Std(), FailOn: p.FailOn,
		MaxFails: &p.MaxFails, MaxTimeouts: &p.MaxTimeouts, MaxLosses: &p.MaxLosses,
		Backoff: new(p.Backoff.Std()), BackoffFactor: p.BackoffFactor, BackoffMax: p.BackoffMax.Std(),
		KeepFinished: new(p.KeepFinished.Std()), KeepArchived: new(p.KeepArchived.Std()),
		KeepOutputs: new(p.KeepOutputs.Std()),
		Unique:      p.Unique, UniqueUntil: p.UniqueUntil, Queue: p.Queue, Priority: new(p.Priority), Tags: p.Tags,
		After: p.After, AfterAny: p.AfterAny,
		LimitKey: p.LimitKey,
	}
}
