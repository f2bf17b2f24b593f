package hidden

import (
	"os"

	"golang.org/x/sys/unix"
)

// Process makes this process non-dumpable (PR_SET_DUMPABLE, proc(5)). Other processes of its user can then neither
// trace it nor read its environment and memory in /proc. Processes with CAP_SYS_PTRACE, such as the processes of root,
// can still do both. If this process crashes, the kernel writes no core dump. A child of this process becomes dumpable
// when it calls exec.
func Process() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
