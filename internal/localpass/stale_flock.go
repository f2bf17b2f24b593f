//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package localpass

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// removeStale removes the files in a directory whose processes have been killed: those of this machine that no process
// has locked. Other machines may share the directory, and perhaps not their locks. It is best effort, because nobody
// reads these files.
func removeStale(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if isOfThisMachine(e.Name()) {
			removeUnlocked(filepath.Join(dir, e.Name()))
		}
	}
}

// isOfThisMachine reports whether the name of a file is a prefix of this machine, and then an IP address with a port.
// A host name may be the beginning of another one.
func isOfThisMachine(name string) bool {
	for _, prefix := range []string{prefix(), tokenPrefix()} {
		addr, ok := strings.CutPrefix(name, prefix)
		host, _, err := net.SplitHostPort(addr)
		if ok && err == nil && net.ParseIP(host) != nil {
			return true
		}
	}
	return false
}

func removeUnlocked(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if checkOwnFile(f) != nil || syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	if isFileAt(f, path) {
		_ = os.Remove(path)
	}
}
