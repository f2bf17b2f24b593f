package fetch

import (
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Numbers are the numbers of copies that a worker uses: its slot runs the program p in the directory p~N. Each number
// belongs to one slot of all workers that share the working directory, because a worker locks one byte of a file for
// each of its numbers. The kernel releases the locks when the process ends.
type Numbers struct {
	mu    sync.Mutex
	file  *os.File
	taken map[int]bool
}

// The number of the original, and that of the first copy.
const (
	numberOfOriginal = 1
	firstCopy        = 2
)

// OpenNumbers opens the locks of a working directory.
func OpenNumbers(dir string) (*Numbers, error) {
	if err := makePrivate(dir, locksDir, 0o700); err != nil {
		return nil, err
	}
	// The name of a program does not begin with a dot, so no program's lock has this name.
	name := filepath.Join(dir, locksDir, ".numbers")
	f, _, err := regular(os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600))
	if err != nil {
		return nil, err
	}
	return &Numbers{file: f, taken: map[int]bool{}}, nil
}

// TakeOriginal reports whether this worker may run rounds in the originals: whether no other worker uses the working
// directory. Workers that start later then use copies.
func (n *Numbers) TakeOriginal() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if used, err := bytesLocked(n.file, numberOfOriginal, 0); used || err != nil {
		return false, err
	}
	return n.lock(numberOfOriginal)
}

// LeaveOriginal gives the originals up if another worker has begun to use the working directory, and reports whether
// it did. Rounds in an original change what others copy.
func (n *Numbers) LeaveOriginal() bool {
	if used, err := bytesLocked(n.file, firstCopy, 0); !used || err != nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	unlockByte(n.file, numberOfOriginal)
	n.taken[numberOfOriginal] = false
	return true
}

// OriginalUsed reports whether another worker runs rounds in the originals.
func (n *Numbers) OriginalUsed() bool {
	used, err := bytesLocked(n.file, numberOfOriginal, 1)
	return used || err != nil
}

// Take returns a number for a slot: one more than the slot's, or else the first that is free.
func (n *Numbers) Take(slot int) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ok, err := n.lock(slot + 1); ok || err != nil {
		return slot + 1, err
	}
	for number := firstCopy; ; number++ {
		if ok, err := n.lock(number); ok || err != nil {
			return number, err
		}
	}
}

func (n *Numbers) lock(number int) (bool, error) {
	if n.taken[number] {
		return false, nil
	}
	ok, err := lockByte(n.file, int64(number))
	n.taken[number] = ok
	return ok, err
}

// Valid reports whether the file of the locks is still there. If it was removed, other workers do not see the locks.
func (n *Numbers) Valid() bool { return sameFile(n.file, n.file.Name()) }

// Close gives all numbers back.
func (n *Numbers) Close() { n.file.Close() }
