package record

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// InMemory is how many bytes of each stream stay in memory if the round runs in the worker's process.
const InMemory = 64 << 10

// NewInMemory returns the Record of a round that runs in the worker's process. The round writes to [Record.Writers].
// The slot makes its files only if a stream has more than [InMemory] bytes.
func NewInMemory(slot *Slot, of RoundRef, private bool) *Record {
	all := &struct { // one piece of memory, because rounds may be short
		Record
		spill
		streams [2]memory
	}{spill: spill{slot: slot, of: of, private: private}}
	r := &all.Record
	r.slot, r.spare, r.spill = slot, [2]bool{true, true}, &all.spill
	for i := range all.streams {
		m := &all.streams[i]
		m.spill, m.stream = &all.spill, i
		r.memory[i], r.files[i].source = m, m
	}
	return r
}

// Writers returns the writers for the streams of a round that runs in the worker's process.
func (r *Record) Writers() (stdout, stderr io.Writer) {
	if r.spill == nil {
		return r.Stdout, r.Stderr
	}
	return r.memory[0], r.memory[1]
}

// A spill opens the files of the slot once, for both streams.
type spill struct {
	slot    *Slot
	of      RoundRef
	private bool

	mu     sync.Mutex
	files  [2]*os.File
	opened bool
}

func (s *spill) file(i int) (f *os.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		s.files, err = s.slot.open(s.of, [2]bool{true, true}, s.private)
		s.opened = err == nil
	}
	return s.files[i], err
}

func (s *spill) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	closeAll(s.files)
}

// A memory is a stream of a round that runs in the worker's process. The stream is in memory while it has at most
// InMemory bytes. After that it is in the file of the slot.
type memory struct {
	spill  *spill // opens the files of the slot
	stream int    // 0 for stdout, 1 for stderr

	mu      sync.Mutex
	text    []byte
	file    *os.File // nil while the stream is in memory
	size    int64
	written time.Time // when the round last wrote
	lost    error     // why the stream lacks bytes that the round wrote; nil if it has all
	closed  bool
}

// Write adds bytes to the stream. After Close, its error is [os.ErrClosed].
func (m *memory) Write(b []byte) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return 0, os.ErrClosed
	case m.file == nil && m.size+int64(len(b)) <= InMemory:
		m.text = append(m.text, b...)
		n = len(b)
	default:
		if err = m.toFile(); err == nil {
			n, err = m.file.Write(b)
		}
		m.lost = cmp.Or(m.lost, err)
	}
	m.size, m.written = m.size+int64(n), time.Now()
	return n, err
}

// toFile moves the stream from memory to the file of the slot.
func (m *memory) toFile() error {
	if m.file != nil {
		return nil
	}
	f, err := m.spill.file(m.stream)
	if err != nil {
		return err
	}
	if _, err := f.Write(m.text); err != nil { // the disk is full
		return errors.Join(err, f.Truncate(0))
	}
	m.file, m.text = f, nil
	return nil
}

func (m *memory) ReadAt(b []byte, from int64) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		return m.file.ReadAt(b, from)
	}
	if from < m.size {
		n = copy(b, m.text[from:])
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

func (m *memory) state() (size int64, changed time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size, m.written, nil
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// whyLost returns why the stream lacks bytes that the round wrote. It returns nil if the stream has all bytes.
func (m *memory) whyLost() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// isInFile reports whether the stream is in the file of the slot.
func (m *memory) isInFile() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file != nil
}

// copyTo makes a file with the stream, which is in memory.
func (m *memory) copyTo(dir *os.File, name string, private bool) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		mode(private))
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := f.Write(m.text); err != nil {
		_ = unix.Unlinkat(int(dir.Fd()), name, 0)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
