package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A key names a process for good: its number together with when it began, in ticks since the
// machine did.
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
	kernel    bool // a thread of the kernel
	execing   bool // within execve: it has lost its old environment and not yet got the new one
}

// alive tells a process that runs from one that only waits to be waited for. The first thread may
// have ended before the others.
func (p proc) alive() bool { return p.state != 'Z' && p.state != 'X' || p.threads > 1 }

func (p proc) stopped() bool { return p.state == 'T' || p.state == 't' }

// envEnd is where among the fields behind the name it stands at which address the environment ends.
const envEnd = 48

// Among the flags of a process: PF_KTHREAD and PF_EXITING.
const (
	kernelThread = 0x200000
	exiting      = 0x4
)

// look reads one process.
func look(pid int) (proc, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}, err
	}
	return parseStat(pid, text)
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
			return nil, err // this one is there and was not seen
		}
		if err != nil {
			continue // it is gone
		}
		if p, err := parseStat(pid, buf[:n]); err == nil {
			all = append(all, p)
		}
	}
	return adopted(all), nil
}

// adopted looks again at those whose parents ended while the others were read: they have new ones.
func adopted(all []proc) []proc {
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

// readAt reads a file by plain system calls, which is half of what it costs by os.ReadFile.
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

// parseStat reads the fields behind the name, which may hold anything, blanks and brackets too.
func parseStat(pid int, text []byte) (proc, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[end+1:])
	if end < 0 || len(fields) < 20 {
		return proc{}, fmt.Errorf("/proc/%d/stat cannot be understood: %q", pid, text)
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

// mostEnviron is more than the kernel lets an environment have.
const mostEnviron = 8 << 20

// execTries times execPause is how long a process may take within execve: on a busy machine that may be long.
const (
	execTries = 5000
	execPause = 200 * time.Microsecond
)

// environ returns the environment that a process was started with; nothing where that is not for
// us to see. A process that is just being started is looked at again.
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
	text, _ := readProc(pid, "environ") // it may have come between the two
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

// cgroupOf returns the cgroup (v2) of a process, as below the root of this process's view. It can
// be read until the process has been waited for.
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
