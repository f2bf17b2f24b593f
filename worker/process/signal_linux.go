package process

import (
	"os"
	"syscall"
)

// signal sends s to a process that was seen earlier. FindProcess opens the process that has the PID now, by a pidfd. If
// that process began at the same time as p, it is the process p.
func (p proc) signal(s syscall.Signal) error {
	held, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer held.Release()
	now, err := look(p.pid)
	if err != nil || now.key != p.key {
		return os.ErrProcessDone
	}
	return held.Signal(s)
}
