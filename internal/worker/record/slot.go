package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Slot has one pair of output files. Rounds use it one after the other, if the configuration does not ask for files
// of each round.
//
// A program that has ended may have left a process behind, or may have passed its output to a process of another
// program. So a round gets the files of the round before only if the kernel says that no other process has them open.
// Otherwise the round gets new files.
type Slot struct {
	path   string // the directory of the files
	number int    // the number of the slot; a part of the files' names
	before func() // called before the directory is made; may be nil
	dir    *os.File
	at     int         // the descriptor of dir
	label  *os.File    // says whose output the files contain, for [Salvage]
	made   unix.Stat_t // the label as it was made
	files  [2]*spare
}

// A RoundRef says whose output the files of a Slot contain.
type RoundRef struct {
	Program string `json:"program"`
	Task    int64  `json:"task"`
	Round   int    `json:"round"`
	Number  int    `json:"number"` // the number in the names of the round's files; 0 if no file has a name
}

// A Slot has a file that [Salvage] reads. A label is the content of this file.
type label struct {
	RoundRef
	// names of the files for stdout and stderr, in the Slot's directory; "" means no file
	Files [2]string `json:"files"`
}

// A spare is a file of a Slot.
type spare struct {
	*os.File // the worker's own descriptor; programs get other descriptors
	fd       int
	name     string
	private  bool
	info     unix.Stat_t // the file as it was made
}

// NewSlot returns a Slot whose files are in the directory at path. It makes directory and files when a round needs
// them. Before that, it calls the function before, which may be nil.
func NewSlot(path string, number int, before func()) *Slot {
	return &Slot{path: path, number: number, before: before}
}

// Close removes the files.
func (s *Slot) Close() {
	for i := range s.files {
		s.discard(i)
	}
	if s.label != nil {
		s.label.Close()
		_ = unix.Unlinkat(s.at, s.labelName(), 0)
	}
	if s.dir != nil {
		s.dir.Close()
	}
	s.label, s.dir = nil, nil
}

func (s *Slot) labelName() string { return "slot-" + strconv.Itoa(s.number) + labelEnding }

const labelEnding = ".round"

// open returns descriptors for the program of a round: one for each stream in use. The files are empty.
func (s *Slot) open(of RoundRef, use [2]bool, private bool) (program [2]*os.File, err error) {
	program, err = s.openHere(of, use, private)
	if errors.Is(err, unix.ENOENT) { // a program has removed the directory
		s.Close()
		program, err = s.openHere(of, use, private)
	}
	return program, err
}

func (s *Slot) openHere(of RoundRef, use [2]bool, private bool) (program [2]*os.File, err error) {
	if err = s.openDir(); err != nil {
		return program, err
	}
	defer func() {
		if err != nil {
			closeAll(program)
		}
	}()
	n := label{RoundRef: of}
	for i := range use {
		if !use[i] {
			continue
		}
		if program[i], err = s.openFile(i, private); err != nil {
			return program, err
		}
		n.Files[i] = s.files[i].name
	}
	return program, s.write(n)
}

func closeAll(files [2]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func (s *Slot) openDir() error {
	if s.dir != nil {
		return nil
	}
	if s.before != nil {
		s.before()
	}
	if err := os.MkdirAll(s.path, 0o755); err != nil {
		return err
	}
	fd, err := unix.Open(s.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: s.path, Err: err}
	}
	s.dir, s.at = os.NewFile(uintptr(fd), s.path), fd
	return nil
}

// write records whose output the files will contain. The file has one line; text after this line is left from an
// earlier round.
func (s *Slot) write(n label) error {
	if err := s.openLabel(); err != nil {
		return err
	}
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = s.label.WriteAt(append(line, '\n'), 0)
	return err
}

// openLabel makes a new label if there is none, or if a program has replaced or changed it.
func (s *Slot) openLabel() error {
	if s.label != nil {
		var now unix.Stat_t
		if unix.Fstatat(s.at, s.labelName(), &now, unix.AT_SYMLINK_NOFOLLOW) == nil && isAsMade(&s.made, &now) {
			return nil
		}
		s.label.Close()
		s.label = nil
	}
	f, err := s.create(s.labelName(), unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Fstat(int(f.Fd()), &s.made); err != nil {
		f.Close()
		return os.NewSyscallError("fstat", err)
	}
	s.label = f
	return nil
}

// openFile opens the file for a stream a second time, for a program. It makes a new file if the old one is not as this
// process made it, or if another process has it open.
func (s *Slot) openFile(i int, private bool) (*os.File, error) {
	if f := s.files[i]; f != nil {
		if program := s.again(f, private); program != nil {
			return program, nil
		}
		s.discard(i)
	}
	if err := s.make(i, private); err != nil {
		return nil, err
	}
	return s.openProgram(s.files[i])
}

func (s *Slot) again(f *spare, private bool) *os.File {
	if f.private != private || !isOnlyOpenHere(f.fd) {
		return nil
	}
	program, err := s.openProgram(f)
	if err != nil {
		return nil
	}
	return program
}

// openProgram opens a file for a program. It returns an error if a program has replaced or changed the file.
func (s *Slot) openProgram(f *spare) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_CLOEXEC
	path := filepath.Join(s.path, f.name)
	fd, err := unix.Openat(s.at, f.name, flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := f.empty(fd); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// empty empties a file that no program has changed.
func (f *spare) empty(fd int) error {
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return err
	}
	if !isAsMade(&f.info, &now) {
		return errors.New("a program has changed the file")
	}
	if now.Size == 0 {
		return nil
	}
	return unix.Ftruncate(fd, 0)
}

// isAsMade reports whether now describes a file as it was made, apart from its size and times. A file with a second
// name is not as it was made: a program has kept the file.
func isAsMade(made, now *unix.Stat_t) bool {
	return now.Dev == made.Dev && now.Ino == made.Ino && now.Mode == made.Mode && now.Uid == made.Uid &&
		now.Gid == made.Gid && now.Nlink == 1
}

func mode(private bool) uint32 {
	if private {
		return 0o600
	}
	return 0o644
}

// make makes a new file for a stream.
func (s *Slot) make(i int, private bool) error {
	name := fmt.Sprintf("slot-%d%s", s.number, [2]string{".out", ".err"}[i])
	f, err := s.create(name, unix.O_RDWR, mode(private))
	if err != nil {
		return err
	}
	made := &spare{File: f, fd: int(f.Fd()), name: name, private: private}
	if err := unix.Fstat(made.fd, &made.info); err != nil {
		f.Close()
		return os.NewSyscallError("fstat", err)
	}
	s.files[i] = made
	return nil
}

// create makes a file. It removes an older file of that name, such as one of a killed worker.
func (s *Slot) create(name string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Openat(s.at, name, flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err == nil {
			return os.NewFile(uintptr(fd), filepath.Join(s.path, name)), nil
		}
		if !errors.Is(err, unix.EEXIST) || unix.Unlinkat(s.at, name, 0) != nil {
			return nil, &os.PathError{Op: "create", Path: filepath.Join(s.path, name), Err: err}
		}
	}
}

// discard removes the file for a stream. The next round gets a new one.
func (s *Slot) discard(i int) {
	f := s.files[i]
	if f == nil {
		return
	}
	_ = unix.Unlinkat(s.at, f.name, 0)
	f.Close()
	s.files[i] = nil
}

// empty empties the file for a stream.
func (s *Slot) empty(i int) {
	f := s.files[i]
	var info unix.Stat_t
	if unix.Fstat(f.fd, &info) != nil || info.Size > 0 && unix.Ftruncate(f.fd, 0) != nil {
		s.discard(i)
		return
	}
	if info.Size > 0 {
		s.closeEmpty(f)
	}
}

// closeEmpty opens a file that was emptied, and closes it. The file system ext4 writes a file to the disk when it is
// closed for the first time after it was emptied (auto_da_alloc). Now there is nothing to write. Otherwise the next
// round would wait for the disk.
func (s *Slot) closeEmpty(f *spare) {
	fd, err := unix.Openat(s.at, f.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	unix.Close(fd)
}

// keep moves the file for a stream to a directory, and returns it. The slot then has no file for the stream. If the
// name is taken, the error is [os.ErrExist].
func (s *Slot) keep(i int, dir *os.File, name string) (*os.File, error) {
	f := s.files[i]
	kept, err := f.moveTo(s.at, dir, name)
	if err != nil {
		return nil, err
	}
	_ = unix.Unlinkat(s.at, f.name, 0)
	s.files[i] = nil
	return kept, nil
}

// moveTo gives the file a name in another directory. It returns a copy if that is the only way: if a program has
// renamed the file, or if the directory is on another file system.
func (f *spare) moveTo(from int, to *os.File, name string) (*os.File, error) {
	var there unix.Stat_t
	err := unix.Fstatat(from, f.name, &there, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && there.Dev == f.info.Dev && there.Ino == f.info.Ino {
		err = unix.Linkat(from, f.name, int(to.Fd()), name, 0)
		switch {
		case err == nil:
			return f.File, nil
		case errors.Is(err, unix.EEXIST):
			return nil, &os.PathError{Op: "create", Path: filepath.Join(to.Name(), name), Err: err}
		}
	}
	kept, err := f.copyTo(to, name)
	if err != nil {
		return nil, err
	}
	f.Close()
	return kept, nil
}

func (f *spare) copyTo(to *os.File, name string) (*os.File, error) {
	path := filepath.Join(to.Name(), name)
	fd, err := unix.Openat(int(to.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		uint32(f.info.Mode)&0o777)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	kept := os.NewFile(uintptr(fd), path)
	if _, err = io.Copy(kept, io.NewSectionReader(f.File, 0, 1<<62)); err != nil {
		kept.Close()
		_ = unix.Unlinkat(int(to.Fd()), name, 0)
		return nil, err
	}
	return kept, nil
}
