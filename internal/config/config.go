package config

import (
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
)

// Forever is the Duration that "inf" stands for. It is the largest Duration, so adding to it overflows.
const Forever = time.Duration(math.MaxInt64)

// Log is the configuration of the log (docs/configuration.md, "[log]").
type Log struct {
	Level  slog.Level // the lowest level of messages in the log; default: info
	Format string     // "text" or "json"; default: "text"
}

// Server is the configuration of tdf-server (docs/configuration.md, "[server]").
type Server struct {
	Redis         Redis
	Namespace     string
	Namespaces    []string      // several that work as one (docs/shards.md); none means only Namespace
	RoundDuration time.Duration // maximum time between the starts of two rounds of the server; default: 1 s
	OutageGrace   time.Duration // the grace period after an outage; default: 30 s
	Log           Log
}

// Worker is the configuration of tdf-worker (docs/configuration.md, "[worker]").
type Worker struct {
	Redis      Redis
	API        API // instead of Redis, if it has a URL
	Namespace  string
	Namespaces []Part // several that work as one (docs/shards.md); none means only Namespace

	Directory          string // the working directory, as written in the file; default: "."
	TaskOutputFilename string // file for a round's stdout; may contain $program, $worker, $taskId and $round
	TaskErrorFilename  string // file for a round's stderr; may contain $program, $worker, $taskId and $round

	// OutputFilenameSet and ErrorFilenameSet say whether the file or the environment sets the key, even to its default
	// ([Worker.KeepsOutput]).
	OutputFilenameSet, ErrorFilenameSet bool

	// the queues that the worker serves, in order; none means the queue of the tasks without a queue
	Queues []class.QueueShare
	Tags   []string // the tags that the worker offers
	// the group of the tasks that the worker claims; "" means those of all groups, and tasks without a group
	Group string

	// what the worker offers to tasks that ask for resources; nil means nothing (docs/resources.md)
	Resources *class.ResourceOffer

	Concurrency int // number of slots; 0 means one slot per core; default: 1

	SleepAfterSuccess          time.Duration // pause of a slot after a successful round; default: 0
	SleepAfterFailure          time.Duration // pause of a slot after a failed round; default: 0.5 s
	SleepAfterNoProcessClaimed time.Duration // maximum time between two claims of an idle worker; default: 2 s

	Lease         time.Duration // how long a claim holds without a renewal; above 0; default: 30 s
	MetricsListen string        // the address that serves /metrics; "" for none

	// "end" ends programs whose lease ran out, and "continue" lets them run; default: "continue"
	OnLeaseLost string
	// how long programs may continue after the worker received the signal to stop; default: 10 s
	Grace        time.Duration
	KillGrace    time.Duration // time between SIGTERM and SIGKILL; default: 5 s
	TimeLimit    time.Duration // how long the worker may run; 0 means no limit; no key has it
	IdleTimeout  time.Duration // how long the worker waits for a task; 0 means no limit; no key has it
	FetchTimeout time.Duration // maximum time to fetch a program; above 0; always 30 min in a configuration

	MaxOutput       int64 // maximum number of bytes of stdout, and of stderr, in a report; 0 means 256 MiB; default: 1 MiB
	MaxProgramBytes int64 // maximum size of a fetched program, and of all its unpacked files; default: 1 GiB

	MaxCopyBytes int64 // maximum size in bytes of a program that is copied for each slot; always 1 GiB

	// maximum size in bytes of a round's checkpoint, result.json and updates; always 1 MiB each
	MaxCheckpoint, MaxResult, MaxUpdates int64

	MaxFetch int64 // maximum size in bytes of the files that a round brings back; default: 16 MiB

	Env     []string // names of environment variables that programs inherit in addition to the usual ones
	EnvFile string   // file with environment variables for programs; may contain $program; "" means no file
	User    string   // the user that programs run as; "" means the worker's user
	Memory  int64    // how many bytes all processes of a program may use together; 0 means no limit

	KeepPrograms time.Duration // how long the worker keeps fetched programs after their last use; default: 7 days

	Log Log
}

// KeepsOutput reports whether the worker keeps the stdout of every round in a file, because the configuration sets
// TaskOutputFilename. Without this setting, it keeps the file of a round only if Redis does not hold the whole output.
func (w Worker) KeepsOutput() bool { return w.OutputFilenameSet || w.TaskOutputFilename != outputFile }

// KeepsError is like KeepsOutput, but for stderr and TaskErrorFilename.
func (w Worker) KeepsError() bool { return w.ErrorFilenameSet || w.TaskErrorFilename != errorFile }

// Manager is the configuration of a manager (docs/configuration.md, "[manager]").
type Manager struct {
	Redis         Redis
	Namespace     string
	RoundDuration time.Duration // maximum time between the starts of two rounds of the manager; default: 1 s

	// TaskDefaults are the defaults of new tasks. Program, Source and Input are empty.
	TaskDefaults         task.Properties
	AddRandomStartOffset bool // whether a random fraction of a second is added to each StartAfter; default: false
	Log                  Log
}

// setBounds sets what no key has. The time for a fetch is that of a setup.sh that compiles; a download that hangs ends
// earlier. A checkpoint, a result and updates go through Redis with each report, so larger data belong into files.
func (w *Worker) setBounds() {
	w.FetchTimeout = 30 * time.Minute
	w.MaxCheckpoint, w.MaxResult, w.MaxUpdates, w.MaxCopyBytes = 1<<20, 1<<20, 1<<20, 1<<30
}

// LoadWorker reads the configuration file at path. Environment variables override the file, and overrides override
// both. Every error is an [*Error].
func LoadWorker(path string, overrides ...Override) (Worker, error) {
	s, err := loadFile(path, overrides...)
	if err != nil {
		return Worker{}, err
	}
	return s.forWorker()
}

// LoadManager reads the configuration file at path. Environment variables override the file. Every error is an
// [*Error].
func LoadManager(path string) (Manager, error) {
	s, err := loadFile(path)
	if err != nil {
		return Manager{}, err
	}
	return s.forManager()
}

// DefaultServer returns the default configuration of a server. Environment variables override the defaults. Every
// error is an [*Error].
func DefaultServer(namespace string) (Server, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Server{}, err
	}
	return s.server, nil
}

// DefaultWorker returns the default configuration of a worker. Environment variables override the defaults. Every
// error is an [*Error].
func DefaultWorker(namespace string) (Worker, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Worker{}, err
	}
	return s.forWorker()
}

// DefaultManager returns the default configuration of a manager. Environment variables override the defaults. Every
// error is an [*Error].
func DefaultManager(namespace string) (Manager, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Manager{}, err
	}
	return s.forManager()
}

// Logger returns a logger that writes to w, with the configured level and format.
func (l Log) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
