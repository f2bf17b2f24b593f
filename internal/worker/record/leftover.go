package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Leftover is the output of a round that a killed worker has left.
type Leftover struct {
	RoundRef
	files [2]*os.File // nil for a stream without output
}

// Streams returns the streams with output: 0 for stdout, 1 for stderr.
func (l *Leftover) Streams() (streams []int) {
	for i, f := range l.files {
		if f != nil {
			streams = append(streams, i)
		}
	}
	return streams
}

// Keep moves the file for a stream to a directory. If the name is taken, the error is [fs.ErrExist].
func (l *Leftover) Keep(stream int, dir *os.File, name string) error {
	return move(l.files[stream], dir, name)
}

// Salvage calls keep for each round whose output a killed worker left in its [Spool]. It removes no file. No other
// process may use the directory.
//
// Programs may have changed the files. Salvage calls leftOut for each file that it leaves out for this reason.
func Salvage(dir string, keep func(*Leftover), leftOut func(file string, why error)) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	rounds := map[RoundRef]*Leftover{}
	for _, e := range entries {
		of, stream := roundOf(e.Name())
		if stream < 0 {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := openRegular(path)
		if err != nil {
			leftOut(path, err)
			continue
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.Size() == 0 {
			continue
		}
		if rounds[of] == nil {
			rounds[of] = &Leftover{RoundRef: of}
		}
		rounds[of].files[stream] = f
	}
	for _, left := range rounds {
		keep(left)
	}
	return err
}

// roundOf parses the name of a file in a [Spool]. The stream is -1 if it is no such name.
func roundOf(name string) (of RoundRef, stream int) {
	ending := filepath.Ext(name)
	parts := strings.SplitN(strings.TrimSuffix(name, ending), "-", 3)
	if len(parts) < 3 {
		return of, -1
	}
	id, err := strconv.ParseInt(parts[0], 10, 64)
	round, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil {
		return of, -1
	}
	return RoundRef{Program: parts[2], Task: id, Round: round}, slices.Index(endings[:], ending)
}

// openRegular opens a regular file that has only one name.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("the file is not a regular file")
	case info.Sys().(*syscall.Stat_t).Nlink != 1:
		err = fmt.Errorf("the file has %d names", info.Sys().(*syscall.Stat_t).Nlink)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
