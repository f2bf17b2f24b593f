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
	"github.com/tdf-framework/tdf/internal/stdtime"
)

// Options configure a manager. Only Namespace is required. The zero value of any other field means its default.
type Options struct {
	// Redis says where Redis is and how to log in. Default: localhost, port 6379, no password.
	Redis config.Redis

	// Namespace is the project's name. All its keys in Redis begin with it.
	Namespace string

	// RoundDuration is the longest time between the starts of two rounds of Run. A finished task starts a round at once. Default: 1 s.
	RoundDuration time.Duration

	// TaskDefaults has the values of properties that a [Definition] leaves at zero.
	TaskDefaults Definition

	// AddRandomStartOffset adds 0 to 999 ms to the StartAfter of each opened task, so that tasks start in random order.
	AddRandomStartOffset bool

	// Log gets what the manager logs. Default: lines of text on stderr, from level info up.
	Log *slog.Logger

	// Name is the manager's name in the logs of tasks. Default: "manager".
	Name string

	// Progress is where Run shows its progress: in one line of a terminal that is rewritten, elsewhere in plain lines, at most one in
	// 5 s. Default: nowhere.
	Progress io.Writer
}

// LoadOptions reads a configuration file, such as manager.cfg. Environment variables overrule the file (docs/configuration.md). Log
// writes to stderr as section [log] says. The error is a *[config.Error].
func LoadOptions(path string) (Options, error) {
	cfg, err := config.LoadManager(path)
	if err != nil {
		return Options{}, err
	}
	return OptionsOf(cfg), nil
}

// OptionsOf returns the options of a configuration that package config has read.
func OptionsOf(cfg config.Manager) Options {
	o := Options{
		Redis: cfg.Redis, Namespace: cfg.Namespace, RoundDuration: cfg.RoundDuration,
		TaskDefaults: definitionOf(cfg.TaskDefaults), AddRandomStartOffset: cfg.AddRandomStartOffset,
		Log: cfg.Log.Logger(os.Stderr),
	}
	if cfg.RoundDuration == 0 { // no wait between rounds
		o.RoundDuration = leastRound
	}
	return o
}

// settings are options with their defaults, as the rest of the package uses them.
type settings struct {
	cfg      config.Manager
	log      *slog.Logger
	name     string
	progress io.Writer
}

func (o Options) settings() (settings, error) {
	cfg, err := config.DefaultManager(o.Namespace) // checks the name
	if err != nil {
		return settings{}, fmt.Errorf("make manager: %w", err)
	}
	cfg.Namespace, cfg.Redis = o.Namespace, o.Redis // these options overrule the environment
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

// NoTimeout is a Timeout without a limit.
const NoTimeout = stdtime.Forever

// NoEnd returns the EndBefore of a task that never expires: a time in the year 5138.
func NoEnd() time.Time { return stdtime.Never() }

// A Definition says what a task runs, when, and how often it may fail. A field that is zero has the value of [Options].TaskDefaults,
// or else the default given here (docs/lifecycle.md).
type Definition struct {
	Program string `json:"program"`             // the program's name, and its directory on a worker
	Source  string `json:"source" only:"whole"` // where workers get the program (docs/programs.md)
	Input   string `json:"input,omitempty"`     // the arguments of run.sh, split into words as a POSIX shell does

	// Group is the group that the task belongs to, such as a stage or a campaign. Default: none.
	Group string `json:"campaign,omitempty"`

	// Meta is the manager's own data about the task, up to 4 KiB. Default: none.
	Meta string `json:"meta,omitempty"`

	// No worker claims the task before StartAfter. Default: at once.
	StartAfter time.Time `json:"start_after,omitzero" only:"whole"`

	// The task expires if it is not executed by EndBefore. Default: NoEnd().
	EndBefore time.Time `json:"end_before,omitzero" only:"whole"`

	// Timeout is the longest run time of a round. Default: NoTimeout.
	Timeout time.Duration `json:"timeout,omitempty" only:"whole"`

	// FailOn says what makes a round fail. Default: tdf.FailOnStderr.
	FailOn tdf.FailOn `json:"fail_on" only:"whole"`

	// How many times the task runs again after a failed, a timed out and a lost round. nil is the default: 0, 0 and 3.
	// new(2) allows two more rounds.
	MaxFails    *int `json:"max_fails" only:"whole"`
	MaxTimeouts *int `json:"max_timeouts" only:"whole"`
	MaxLosses   *int `json:"max_losses" only:"whole"`
}

// properties returns the properties of a task with the values of d, and those of defaults where d has zeros.
func (d Definition) properties(defaults tdf.Properties) tdf.Properties {
	p := defaults
	override(&p.Program, d.Program)
	override(&p.Source, d.Source)
	override(&p.Input, d.Input)
	override(&p.Group, d.Group)
	override(&p.Meta, d.Meta)
	override(&p.StartAfter, stdtime.TDF(d.StartAfter))
	override(&p.EndBefore, stdtime.TDF(d.EndBefore))
	override(&p.Timeout, stdtime.Seconds(d.Timeout))
	override(&p.FailOn, d.FailOn)
	set(&p.MaxFails, d.MaxFails)
	set(&p.MaxTimeouts, d.MaxTimeouts)
	set(&p.MaxLosses, d.MaxLosses)
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

// definitionOf returns the definition that has these properties, whatever the defaults are.
func definitionOf(p tdf.Properties) Definition {
	return Definition{
		Program: p.Program, Source: p.Source, Input: p.Input, Group: p.Group, Meta: p.Meta,
		StartAfter: stdtime.Time(p.StartAfter), EndBefore: stdtime.Time(p.EndBefore), Timeout: stdtime.Duration(p.Timeout), FailOn: p.FailOn,
		MaxFails: &p.MaxFails, MaxTimeouts: &p.MaxTimeouts, MaxLosses: &p.MaxLosses,
	}
}
