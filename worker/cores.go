package worker

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// coreSlack is how much older than a round its files may seem: file systems have coarse clocks.
const coreSlack = time.Second

// removeCores removes the memory dumps that crashes of a round have left in the directory in which it ran, logs their
// names, and returns them: each may be as large as the memory of the program, and nobody looks for them there.
func removeCores(r *Round, dir string, exit string, began time.Time) (removed []string) {
	if !mayDump(exit) {
		return nil
	}
	names, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "core*"))
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil || info.ModTime().Before(began) || !isCore(name) || os.Remove(name) != nil {
			continue
		}
		r.Log.Warn("removed a core file of the program", "file", name, "bytes", info.Size())
		removed = append(removed, filepath.Base(name))
	}
	return removed
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// mayDump reports whether run.sh, or the last process that it waited for, was ended by a signal.
func mayDump(exit string) bool {
	return strings.HasPrefix(exit, "signal: ") || len(exit) == 3 && exit > "128" && exit <= "192"
}

// isCore reports whether a file is a memory dump, and no other file with such a name.
func isCore(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 18)
	n, _ := f.ReadAt(head, 0)
	if n < len(head) || string(head[:4]) != elf.ELFMAG {
		return false
	}
	return head[16] == byte(elf.ET_CORE) || head[17] == byte(elf.ET_CORE) // in either order of bytes
}
