package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A key identifies a process by its PID and the time when it began, in ticks since boot.
type key struct {
	pid  int
	born uint64
}

// A proc is a process as /proc/PID/stat shows it.
type proc struct {
	key
	ppid, sid int
	state     byte
	threads   int
	kernel    bool // a kernel thread
	execing   bool // in execve: the process has lost its old environment, and has no new environment yet
}

// alive reports whether a process still runs. A process that has ended stays a zombie until it is reaped. A zombie
// with other threads still runs, because the first thread may end before the others.
func (p proc) alive() bool { return p.state != 'Z' && p.state != 'X' || p.threads > 1 }

// envEnd is the index of the field env_end, the address at which the environment ends. The first field after the name
// has index 0.
const envEnd = 48

// Flags of a process: PF_KTHREAD and PF_EXITING.
const (
	kernelThread = 0x200000
	exiting      = 0x4
)

// look reads the present state of one process.
func look(pid int) (proc, error) {
	buf := make([]byte, 1024)
	n, err := readAt(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/stat", pid), buf)
	if err != nil {
		return proc{}, err
	}
	return parseStat(pid, buf[:n])
}

// snapshot reads all processes of the machine.
func snapshot() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]proc, 0, len(names))
	buf := make([]byte, 1024)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		n, err := readAt(int(dir.Fd()), name+"/stat", buf)
		if err == unix.EMFILE || err == unix.ENFILE || err == unix.ENOMEM {
			return nil, err // the process exists, but cannot be read
		}
		if err != nil {
			continue // the process has ended
		}
		if p, err := parseStat(pid, buf[:n]); err == nil {
			all = append(all, p)
		}
	}
	return correctParents(all), nil
}

// correctParents corrects a snapshot. If the parent of a process ended during the snapshot, the process has a new
// parent, so correctParents reads the process again.
func correctParents(all []proc) []proc {
	there := make(map[int]bool, len(all))
	for _, p := range all {
		there[p.pid] = true
	}
	for i, p := range all {
		if there[p.ppid] || p.ppid == 0 {
			continue
		}
		if now, err := look(p.pid); err == nil && now.key == p.key {
			all[i] = now
		}
	}
	return all
}

// readAt reads a file with plain system calls, at half the cost of os.ReadFile.
func readAt(dir int, name string, buf []byte) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		n, err := unix.Read(fd, buf)
		unix.Close(fd)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// parseStat parses /proc/PID/stat. It uses only the fields after the process's name, since the name may contain
// blanks and parentheses.
func parseStat(pid int, text []byte) (proc, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[end+1:])
	if end < 0 || len(fields) < 20 {
		return proc{}, fmt.Errorf("/proc/%d/stat is invalid: %q", pid, text)
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	born, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return proc{
		key: key{pid, born}, state: fields[0][0],
		ppid: number(1), sid: number(3), threads: number(17), kernel: number(6)&kernelThread != 0,
		execing: len(fields) > envEnd && number(envEnd) == 0 && number(6)&exiting == 0,
	}, err
}

// mostEnviron is the limit for reading an environment, in bytes. The kernel allows only smaller environments.
const mostEnviron = 8 << 20

// An execve can take long on a busy machine. So environ waits for up to execTries times execPause.
const (
	execTries = 5000
	execPause = 200 * time.Microsecond
)

// environ returns the environment with which a process was started, or nothing if this user may not read it. If the
// process is still in execve, environ waits for the end of execve.
func environ(pid int) [][]byte {
	for range execTries {
		text, err := readProc(pid, "environ")
		if err != nil {
			return nil
		}
		if len(text) > 0 {
			return bytes.Split(text, []byte{0})
		}
		pr, err := look(pid)
		if err != nil || !pr.alive() {
			return nil
		}
		if !pr.execing {
			break
		}
		time.Sleep(execPause)
	}
	text, _ := readProc(pid, "environ") // the file may have been filled between the two reads
	return bytes.Split(text, []byte{0})
}

func readProc(pid int, name string) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostEnviron))
}

// cgroupOf returns the cgroup (v2) of a process, as a path below the root that this process sees. It also works for a
// process that has ended, until that process is reaped.
func cgroupOf(pid string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(text) {
		if path, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte("0::")); ok {
			return string(path), nil
		}
	}
	return "", fmt.Errorf("/proc/%s/cgroup names no cgroup of version 2", pid)
}

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
