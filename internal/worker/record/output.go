package record

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// InMemory is how many bytes of each stream stay in memory if the round runs in the worker's process.
const InMemory = 64 << 10

// An output is a stream of a round. It is in a file, or in memory while a round in the worker's process has written at
// most InMemory bytes.
type output struct {
	spool   *Spool
	of      RoundRef
	stream  int // 0 for stdout, 1 for stderr
	private bool

	mu      sync.Mutex
	text    []byte
	file    *os.File  // nil while the stream is in memory
	written time.Time // when the round last wrote to the memory
	lost    error     // why the stream lacks bytes that the round wrote; nil if it has all
	closed  bool
	place   string // the path under which the file is kept; "" if it is not kept
}

// Write adds bytes to the stream. After close, its error is [os.ErrClosed].
func (o *output) Write(b []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, os.ErrClosed
	}
	if o.file == nil && len(o.text)+len(b) <= InMemory {
		o.text, o.written = append(o.text, b...), time.Now()
		return len(b), nil
	}
	if err = o.toFile(); err == nil {
		n, err = o.file.Write(b)
	}
	o.lost = cmp.Or(o.lost, err)
	return n, err
}

// toFile moves the stream from memory to a file.
func (o *output) toFile() error {
	if o.file != nil {
		return nil
	}
	f, err := o.create()
	if err != nil {
		return err
	}
	if _, err := f.Write(o.text); err != nil { // the disk is full
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	o.file, o.text = f, nil
	return nil
}

// create makes the file. Programs append to it, as with >> in a shell. A file of that name is of an earlier execution
// of the round, whose program may still write to it.
func (o *output) create() (*os.File, error) {
	path := filepath.Join(o.spool.Dir, o.of.name(o.stream))
	for tries := 0; ; tries++ {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, o.mode())
		switch {
		case err == nil || tries == 2:
			return f, err
		case errors.Is(err, fs.ErrExist):
			err = os.Remove(path)
		case errors.Is(err, fs.ErrNotExist):
			err = o.spool.make()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Spool) make() error {
	if s.Before != nil {
		s.Before()
	}
	return os.MkdirAll(s.Dir, 0o755)
}

func (o *output) mode() fs.FileMode {
	if o.private {
		return 0o600
	}
	return 0o644
}

func (o *output) ReadAt(b []byte, from int64) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		return o.file.ReadAt(b, from)
	}
	return bytes.NewReader(o.text).ReadAt(b, from)
}

func (o *output) state() (size int64, changed time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return int64(len(o.text)), o.written, nil
	}
	info, err := o.file.Stat()
	if err != nil {
		return 0, time.Time{}, err
	}
	return info.Size(), info.ModTime(), nil
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

func (o *output) whyLost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

func (o *output) keptAt() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.place
}

func (o *output) keep(to *os.File, name string) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		err = write(bytes.NewReader(o.text), to, name, o.mode())
	} else {
		err = move(o.file, to, name)
	}
	if err == nil {
		o.place = filepath.Join(to.Name(), name)
	}
	return err
}

func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.file == nil {
		return
	}
	o.file.Close() // first: to remove an open file takes ext4 longer
	if o.place == "" {
		_ = os.Remove(o.file.Name())
	}
}
