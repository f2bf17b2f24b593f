package process

import (
	"log/slog"
	"os"
	"time"
)

// What a Host may isolate programs by, as Config.Require and Host.Isolation name it.
const (
	Subreaper  = "subreaper"   // orphans of programs stay below this process
	Cgroup     = "cgroup"      // each program has a cgroup (v2) of its own
	User       = "user"        // programs run as another user
	Memory     = "memory"      // Limits.Memory
	CPUSeconds = "cpu_seconds" // Limits.CPU
	FileSize   = "file_size"   // Limits.FileSize
	OpenFiles  = "open_files"  // Limits.OpenFiles
	Processes  = "processes"   // Limits.Processes
	Nice       = "nice"        // Limits.Nice
)

// Limits bound what a program may use. 0 is no limit. Where this process is itself held to less,
// that holds.
type Limits struct {
	Memory    int64         // bytes: of all processes together in a cgroup, else of the address space of each
	CPU       time.Duration // of each process; rounded up to seconds
	FileSize  int64         // bytes of each file that is written
	OpenFiles int           // descriptors of each process
	Processes int           // processes and threads: of the program in a cgroup, else of its user on this machine
	Nice      int           // scheduling priority, 1 (nearly normal) to 19 (last)
}

// Config is what a Host is made from. All of it may be empty.
type Config struct {
	Name    string   // of the worker: part of the name of its cgroup
	Limits  Limits   // of each program
	User    string   // whom programs run as, by name or number, with %n for the number of the slot; "": whoever this process runs as
	Slots   int      // how many programs run at once: as many users does %n stand for
	Require []string // what New must reach: the names above

	// Sole says that this process has no children but the programs, and those of others while they
	// Hold. Then an orphan that belongs to nobody is a program's.
	Sole bool

	// LingerGrace is asked, when a program ended by itself and left processes behind, for what says
	// when those that got SIGTERM may get SIGKILL. nil: at once.
	LingerGrace func() <-chan time.Time

	Log *slog.Logger // nil: none
}

// A Command is a program to start.
type Command struct {
	Slot           int      // from 1 to Config.Slots; no two that run have the same
	Path           string   // a relative one is relative to Dir
	Args           []string // without the program's own name
	Dir            string
	Env            []string // all of the environment; nil: none
	Stdout, Stderr *os.File // nil: /dev/null, as stdin is

	// Mark is a variable of Env, "TDF_DIR=/path", that no other program has with that value: a
	// process with it belongs to this program, wherever it went.
	Mark string
}

// Ended says how a program ended and what it cost.
type Ended struct {
	Exit        string        // "0" to "255", or "signal: " and the signal's name
	Ran         time.Duration // how long it ran, without what it left behind
	CPU         time.Duration // user and system time of all its processes, as far as the system can tell
	MaxRSS      int64         // bytes: the peak of its memory cgroup, with files in memory; else of its largest process; 0: not known, as that one had no more than this process
	OutOfMemory string        // why memory is thought to have run out, in words; "": it is not
	Lingered    int           // processes that were left when it ended by itself
}
