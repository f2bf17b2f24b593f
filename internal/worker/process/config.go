package process

import (
	"log/slog"
	"os"
	"time"
)

// Config configures a Host. The zero Config is valid.
type Config struct {
	Name   string // the worker's name; the name of the Host's cgroup contains it
	Memory int64  // how many bytes all processes of a program may use together; 0 means no limit; needs a cgroup
	// name or number of the user that programs run as, where %n is replaced by the slot's number; "" means the user of
	// this process
	User  string
	Slots int // how many programs may run at once; slots are numbered from 1

	// Sole says that other code of this process starts children only between a call of [Host.Hold] and the call of its
	// release function. So a new child or orphan that appears outside these calls comes from a program.
	Sole bool

	// LingerGrace gives a grace period to processes that a program left behind. They get SIGTERM first, and SIGKILL
	// when the returned channel delivers. If LingerGrace is nil, they get SIGKILL at once.
	LingerGrace func() <-chan time.Time

	Log *slog.Logger // nil means no log
}

// KeptDescriptor is the descriptor of Command.Kept. It is so high that shell scripts do not use it.
const KeptDescriptor = 99

// A Command is a program to start.
type Command struct {
	Slot           int      // from 1 to Config.Slots; unique among the programs that run at the same time
	Path           string   // a relative path is below Dir
	Args           []string // without the program's own name
	Dir            string
	Env            []string // the whole environment; nil means empty
	Stdout, Stderr *os.File // nil means /dev/null; stdin is always /dev/null

	Cores  []int // the numbers of the cores on which the program may run; none means all of this process
	Memory int64 // a limit as Config.Memory, if there are cgroups; 0 means no other limit

	// Kept stays open in the program, as descriptor KeptDescriptor, and in the processes that the program starts. So a
	// lock on this file ends with the last of them. Nil means no file.
	Kept *os.File

	// Mark is a variable of Env, "TDF_DIR=/path", with a value that no other program has. A process with this
	// variable belongs to this program.
	Mark string
}

// Ended says how a program ended, and what resources it used.
type Ended struct {
	Exit string        // "0" to "255", or "signal: " and the signal's name
	Ran  time.Duration // run time of the program itself, without processes that it left behind
	CPU  time.Duration // CPU time of all processes of the program, as far as the system knows
	// peak memory in bytes: of the cgroup, including cached files, or of the largest process; 0 if it may be the peak
	// of this process
	MaxRSS      int64
	OutOfMemory string // why the program ran out of memory; "" if it did not, or if that is unknown
	Lingered    int    // processes that were left when the program ended by itself
}
