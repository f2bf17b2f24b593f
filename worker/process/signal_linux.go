package process

import (
	"os"
	"syscall"
)

// signal sends s to the very process that was seen. FindProcess takes hold of whoever has the number
// now (by a pidfd); only if that began when ours did, it is ours.
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
