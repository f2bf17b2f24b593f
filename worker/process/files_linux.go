package process

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFiles are small files of the kernel that stay open, because they are read again and again. If a file is already
// open, the method read needs only one system call, unlike os.ReadFile.
type openFiles struct {
	fds map[string]int // -1 for a file that this kernel or cgroup does not have
	buf [4 << 10]byte
}

// read returns the content of a file in a directory. The next call of read overwrites it.
func (o *openFiles) read(dir, name string) ([]byte, error) {
	fd, ok := o.fds[name]
	for !ok {
		var err error
		fd, err = unix.Open(filepath.Join(dir, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil && err != unix.ENOENT {
			return nil, err
		}
		if o.fds == nil {
			o.fds = map[string]int{}
		}
		o.fds[name], ok = fd, true
	}
	for {
		if fd < 0 {
			return nil, unix.ENOENT
		}
		n, err := unix.Pread(fd, o.buf[:], 0)
		if err == unix.EINTR {
			continue
		}
		return o.buf[:max(n, 0)], err
	}
}

func (o *openFiles) close() {
	for _, fd := range o.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	o.fds = nil
}
