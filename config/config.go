package config

import (
	"log/slog"
	"math"
	"time"

	"github.com/tdf-framework/tdf"
)

// Forever is the Duration of "inf", where a key allows that. Do not add to it: it is the
// largest one there is.
const Forever = time.Duration(math.MaxInt64)

// Log says what is logged, and how: sections [log].
type Log struct {
	Level  slog.Level // the least level that is logged; default: info
	Format string     // "text" or "json"; default: "text"
}

// Server is what tdf-server needs to know (docs/configuration.md, "[server]").
type Server struct {
	Redis         Redis
	Namespace     string
	RoundDuration time.Duration // the longest wait between two rounds; 0: none; default: 1 s
	OutageGrace   time.Duration // after an outage nothing is declared lost for so long; default: 30 s
	AuditGrace    time.Duration // what is wrong for so long, unchanged, is mended; default: 60 s
	Log           Log
}

// Worker is what tdf-worker needs to know (docs/configuration.md, "[worker]").
type Worker struct {
	Redis     Redis
	Namespace string

	Directory          string // where programs live, as written in the file; default: "."
	TaskOutputFilename string // with $program, $worker, $taskId and $round still to be filled in
	TaskErrorFilename  string // likewise

	Concurrency int // how many programs run at once; 0: as many as there are cores; default: 1

	SleepAfterSuccess          time.Duration // default: 0
	SleepAfterFailure          time.Duration // default: 0.5 s
	SleepAfterNoProcessClaimed time.Duration // the longest wait for work; 0: none; default: 2 s

	Lease        time.Duration // always above 0; default: 30 s
	OnLeaseLost  string        // continue or end; default: continue
	Grace        time.Duration // for running programs when told to stop, or Forever; default: 10 s
	KillGrace    time.Duration // between asking a program to end and ending it; default: 5 s
	FetchTimeout time.Duration // always above 0; default: 600 s
	MaxOutput    int64         // bytes of stdout, and of stderr, that are reported; 0: all, up to 256 MiB; default: 1 MiB
	Limits       Limits

	MaxCheckpoint, MaxResult, MaxUpdates int64 // bytes of what a program may report in files; default: 1 MiB

	Env      []string // variables that programs get beside the usual ones
	EnvFile  string   // with $program still to be filled in; "" for none
	User     string   // that programs run as; "": the worker's
	Programs Programs
	Require  []string // isolation without which the worker does not start

	Collect       string        // where files/ goes; "": it stays here
	KeepScratch   string        // "never", "failed"
	KeepFiles     time.Duration // always above 0, or Forever; default: 7 days
	MaxFilesBytes int64         // 0: no limit

	MaxFailuresInRow int // of one program, before it may be paused; 0: never; default: 20

	Log Log
}

// Programs limits what a program may use; 0: no limit (docs/programs.md, "Isolation").
type Programs struct {
	Memory, FileSize     int64 // bytes
	CPUSeconds           int
	OpenFiles, Processes int
	Nice                 int // from 0 to 19
}

// Limits bounds what a fetched program may be; each is at least 1.
type Limits struct {
	Bytes   int64 // of a download, and of all that is unpacked; default: 1 GiB
	Entries int   // files, directories and links; default: 100,000
	Depth   int   // nested directories; default: 32
	Ratio   int   // unpacked bytes for each packed one, beyond the first MiB; default: 200
}

// Manager is what a manager needs to know (docs/configuration.md, "[manager]").
type Manager struct {
	Redis         Redis
	Namespace     string
	RoundDuration time.Duration // the longest wait between two rounds; 0: none; default: 1 s

	// TaskDefaults holds what a task gets that does not say otherwise. Program, Source and
	// Input are empty.
	TaskDefaults         tdf.Properties
	AddRandomStartOffset bool // add a random part of a second to each StartAfter; default: false
	Log                  Log
}

// LoadServer reads the file at path; environment variables win over it. Every error is an [*Error].
func LoadServer(path string) (Server, error) {
	s, err := loadFile(path)
	if err != nil {
		return Server{}, err
	}
	return s.forServer(), nil
}

// LoadWorker reads the file at path; environment variables win over it. Every error is an [*Error].
func LoadWorker(path string) (Worker, error) {
	s, err := loadFile(path)
	if err != nil {
		return Worker{}, err
	}
	return s.forWorker()
}

// LoadManager reads the file at path; environment variables win over it. Every error is an [*Error].
func LoadManager(path string) (Manager, error) {
	s, err := loadFile(path)
	if err != nil {
		return Manager{}, err
	}
	return s.forManager()
}

// DefaultServer is what LoadServer returns for a file that holds nothing but the namespace.
func DefaultServer(namespace string) (Server, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Server{}, err
	}
	return s.forServer(), nil
}

// DefaultWorker is what LoadWorker returns for a file that holds nothing but the namespace.
func DefaultWorker(namespace string) (Worker, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Worker{}, err
	}
	return s.forWorker()
}

// DefaultManager is what LoadManager returns for a file that holds nothing but the namespace.
func DefaultManager(namespace string) (Manager, error) {
	s, err := loadNamespace(namespace)
	if err != nil {
		return Manager{}, err
	}
	return s.forManager()
}
