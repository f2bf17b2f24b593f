package config

import (
	"log/slog"
	"math"
	"time"

	"github.com/tdf-framework/tdf"
)

// Forever is the Duration of "inf". Do not add to it, because it is the largest Duration and would overflow.
const Forever = time.Duration(math.MaxInt64)

// Log is the configuration of the log: section [log].
type Log struct {
	Level  slog.Level // the lowest level that is logged; default: info
	Format string     // "text" or "json"; default: "text"
}

// Server is the configuration of tdf-server (docs/configuration.md, "[server]").
type Server struct {
	Redis         Redis
	Namespace     string
	RoundDuration time.Duration // the longest time between the starts of two rounds of the server; default: 1 s
	OutageGrace   time.Duration // the grace period after an outage; default: 30 s
	AuditGrace    time.Duration // how long an inconsistent task must stay unchanged before its repair; default: 60 s
	Log           Log
}

// Worker is the configuration of tdf-worker (docs/configuration.md, "[worker]").
type Worker struct {
	Redis     Redis
	Namespace string

	Directory          string // the working directory, as written in the file; default: "."
	TaskOutputFilename string // file for a round's stdout; may contain $program, $worker, $taskId and $round
	TaskErrorFilename  string // file for a round's stderr; may contain the same variables

	Concurrency int // number of slots; 0: one for each core; default: 1

	SleepAfterSuccess          time.Duration // pause of a slot after a successful round; default: 0
	SleepAfterFailure          time.Duration // pause of a slot after a failed round; default: 0.5 s
	SleepAfterNoProcessClaimed time.Duration // the longest wait of an idle worker between claims; default: 2 s

	Lease        time.Duration // how long a claim holds without a renewal; above 0; default: 30 s
	OnLeaseLost  string        // what a program does after its lease ran out: "continue" or "end"; default: "continue"
	Grace        time.Duration // how long programs may run on after the signal to stop; default: 10 s
	KillGrace    time.Duration // time between SIGTERM and SIGKILL; default: 5 s
	FetchTimeout time.Duration // the longest time to fetch a program; above 0; default: 600 s
	MaxOutput    int64         // bytes of stdout and of stderr to report; 0: all, up to 256 MiB; default: 1 MiB
	Limits       Limits

	MaxCheckpoint, MaxResult, MaxUpdates int64 // bytes that a program may report in each of its files; default: 1 MiB

	Env      []string // names of further environment variables that programs inherit
	EnvFile  string   // file with variables for programs; may contain $program; "": none
	User     string   // the user that programs run as; "": the worker's user
	Programs Programs
	Require  []string // isolation that the worker needs to start

	Collect       string        // rsync target for the contents of files/; "": they stay on the worker
	KeepScratch   string        // which rounds keep their scratch/: "never" or "failed"; default: "never"
	KeepFiles     time.Duration // how long the worker keeps output files and programs; above 0; default: 7 days
	MaxFilesBytes int64         // the most bytes of output files and programs together; 0: no limit; default: 0

	MaxFailuresInRow int // failed rounds of a program after which the circuit breaker may open; 0: never; default: 20

	Log Log
}

// Programs limits the resources of a program; 0: no limit (docs/programs.md, "Isolation").
type Programs struct {
	Memory, FileSize     int64 // bytes
	CPUSeconds           int
	OpenFiles, Processes int
	Nice                 int // from 0 to 19
}

// Limits are the limits for a fetched program. Each is at least 1.
type Limits struct {
	Bytes   int64 // largest download, and largest sum of the unpacked files; default: 1 GiB
	Entries int   // number of files, directories and links; default: 100,000
	Depth   int   // depth of nested directories; default: 32
	Ratio   int   // unpacked bytes per packed byte, above 1 MiB; default: 200
}

// Manager is the configuration of a manager (docs/configuration.md, "[manager]").
type Manager struct {
	Redis         Redis
	Namespace     string
	RoundDuration time.Duration // the longest time between the starts of two rounds of the manager; default: 1 s

	// TaskDefaults are the defaults of new tasks. Program, Source and Input are empty.
	TaskDefaults         tdf.Properties
	AddRandomStartOffset bool // add a random part of a second to each StartAfter; default: false
	Log                  Log
}

// LoadServer reads the file at path. Environment variables override it. Every error is an [*Error].
func LoadServer(path string) (Server, error) {
	s, err := loadFile(path)
	if err != nil {
		return Server{}, err
	}
	return s.forServer(), nil
}

// LoadWorker reads the file at path. Environment variables override it. Every error is an [*Error].
func LoadWorker(path string) (Worker, error) {
	s, err := loadFile(path)
	if err != nil {
		return Worker{}, err
	}
	return s.forWorker()
}

// LoadManager reads the file at path. Environment variables override it. Every error is an [*Error].
func LoadManager(path string) (Manager, error) {
	s, err := loadFile(path)
	if err != nil {
		return Manager{}, err
	}
	return s.forManager()
}

// DefaultServer returns the defaults of a server. Environment variables override them.
func DefaultServer(namespace string) (Server, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Server{}, err
	}
	return s.forServer(), nil
}

// DefaultWorker returns the defaults of a worker. Environment variables override them.
func DefaultWorker(namespace string) (Worker, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Worker{}, err
	}
	return s.forWorker()
}

// DefaultManager returns the defaults of a manager. Environment variables override them.
func DefaultManager(namespace string) (Manager, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Manager{}, err
	}
	return s.forManager()
}
