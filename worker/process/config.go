package process

import (
	"log/slog"
	"os"
	"time"
)

// Kinds of isolation, as Config.Require and Host.Isolation name them.
const (
	Subreaper  = "subreaper"   // orphans of programs become children of this process
	Cgroup     = "cgroup"      // each program has a cgroup (v2) of its own
	User       = "user"        // programs run as another user
	Memory     = "memory"      // Limits.Memory
	CPUSeconds = "cpu_seconds" // Limits.CPU
	FileSize   = "file_size"   // Limits.FileSize
	OpenFiles  = "open_files"  // Limits.OpenFiles
	Processes  = "processes"   // Limits.Processes
	Nice       = "nice"        // Limits.Nice
)

// Limits bound what a program may use. 0 means no limit. A stricter limit of this process still holds.
type Limits struct {
	Memory    int64         // bytes: of all processes of the program together with a cgroup, else of the address space of each process
	CPU       time.Duration // of each process; rounded up to seconds
	FileSize  int64         // bytes of each file that is written
	OpenFiles int           // open descriptors of each process
	Processes int           // processes and threads: of the program in a cgroup, else of its user on this machine
	Nice      int           // scheduling priority, from 1 (nearly normal) to 19 (lowest)
}

// Config configures a Host. The zero Config is valid.
type Config struct {
	Name    string   // the worker's name; the cgroup is named after it
	Limits  Limits   // of each program
	User    string   // the user of programs, by name or number, with %n for the number of the slot; "": the user of this process
	Slots   int      // how many programs run at once; %n counts up to it
	Require []string // kinds of isolation without which New fails

	// Sole says that this process has no children except programs, and children that other code starts during a Hold. Any
	// other orphan then belongs to a program.
	Sole bool

	// LingerGrace returns a channel that ends the grace period of processes that a program left behind: they get
	// SIGTERM first, and then SIGKILL. Without it, they get SIGKILL at once.
	LingerGrace func() <-chan time.Time

	Log *slog.Logger // nil: no log
}

// A Command is a program to start.
type Command struct {
	Slot           int      // from 1 to Config.Slots; programs that run at the same time have different ones
	Path           string   // if relative, below Dir
	Args           []string // without the program's own name
	Dir            string
	Env            []string // the whole environment; nil: empty
	Stdout, Stderr *os.File // nil: /dev/null, as stdin is

	// Mark is a variable of Env, "TDF_DIR=/path", with a value that no other program has. A process that has it
	// belongs to this program.
	Mark string
}

// Ended says how a program ended, and what resources it used.
type Ended struct {
	Exit        string        // "0" to "255", or "signal: " and the signal's name
	Ran         time.Duration // run time of the program itself, without processes that it left behind
	CPU         time.Duration // CPU time of all its processes, as far as the system knows
	MaxRSS      int64         // peak memory in bytes: of its cgroup, with cached files, or else of its largest process; 0: unknown, since it had no more than this process
	OutOfMemory string        // why the program ran out of memory, as far as that is known; "": it did not
	Lingered    int           // processes that were left when the program ended by itself
}
