package rounddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/task"
)

// A TooMuchError says why files that match cannot be packed: together, they exceed a limit.
type TooMuchError string

func (e TooMuchError) Error() string { return string(e) }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (TooMuchError) Code() task.Code { return task.CodeFull }

// mostDeep bounds how deep directories may be nested.
const mostDeep = 100

// Found are files of scratch/ that a round brings back.
type Found struct {
	Names []string // paths, relative to scratch/, in order
	Bytes int64
	dir   *Dir
}

// Find finds the regular files of scratch/ that match the patterns, or that are in a directory that matches. It leaves
// out files for which skip returns true, and links, and all other entries; it follows no link. The error says what to
// do if no file matches. It is a TooMuchError if they are too many.
func (d *Dir) Find(patterns []string, skip func(name string) bool) (*Found, error) {
	f := &finder{Matcher: bundle.NewMatcher(patterns), usable: func(*unix.Stat_t) error { return nil }, skip: skip}
	var err error
	if d.OnDisk() {
		f.usable = d.usable
		err = f.find(d.dir, ScratchDir, "", f.Begin(), 0)
	}
	switch {
	case err != nil:
		return nil, err
	case len(f.found) == 0:
		return nil, f.nothing(patterns)
	case len(f.found) > bundle.MaxFiles:
		return nil, TooMuchError(fmt.Sprintf("more than %d files match %s; pack them into one file, and fetch that",
			bundle.MaxFiles, strings.Join(patterns, ", ")))
	}
	slices.Sort(f.found)
	return &Found{f.found, f.bytes, d}, nil
}

// Pack packs the files. The error is a TooMuchError if they have more bytes than most, whose configuration key is
// max_fetch.
func (f *Found) Pack(most int64) (packed string, files task.Files, err error) {
	if f.Bytes > most {
		return "", files, TooMuchError(fmt.Sprintf("the files that match (%d) have %d bytes, more than max_fetch (%d); "+
			"keep blobs (docs/blobs.md), fetch fewer files, or raise [worker] max_fetch where the task runs", len(f.Names),
			f.Bytes, most))
	}
	var p bundle.Packer
	left := most
	for _, name := range f.Names {
		n, err := f.packFile(&p, name, left)
		if err != nil {
			return "", files, err
		}
		left -= n
	}
	return p.Bundle()
}

// packFile packs a file, if it has at most so many bytes.
func (f *Found) packFile(p *bundle.Packer, name string, most int64) (size int64, err error) {
	file, info, err := f.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if info.Size > most {
		return 0, fmt.Errorf("%s: it grew while it was read", name)
	}
	return info.Size, p.Add(name, fs.FileMode(info.Mode), info.Size, file)
}

// Open opens a file. It opens each part of the path by itself, because another program of the user may change the path.
func (f *Found) Open(name string) (file *os.File, info unix.Stat_t, err error) {
	at, err := f.dir.dir.open(ScratchDir)
	if err != nil {
		return nil, info, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { at.Close() }()
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "." {
			break
		}
		next, err := at.open(part)
		if err != nil {
			return nil, info, fmt.Errorf("%s: %w", name, err)
		}
		at.Close()
		at = next
	}
	fd, err := unix.Openat(at.fd(), path.Base(name), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, info, &os.PathError{Op: "open", Path: name, Err: err}
	}
	file = os.NewFile(uintptr(fd), name)
	if err := f.dir.stat(fd, &info); err != nil {
		file.Close()
		return nil, info, fmt.Errorf("%s: %w", name, err)
	}
	return file, info, nil
}

// A finder finds the files that match.
type finder struct {
	bundle.Matcher
	usable func(*unix.Stat_t) error
	skip   func(name string) bool

	found   []string // paths, relative to scratch/
	bytes   int64
	leftOut string // an entry that matches and is left out
	why     string
}

// find finds files in a directory.
func (f *finder) find(in *dir, name, below string, m bundle.Match, depth int) error {
	if depth > mostDeep {
		return fmt.Errorf("%s: it is nested more than %d directories deep", below, mostDeep)
	}
	at, err := in.open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(name, below), err)
	}
	defer at.Close()
	var first error
	err = at.each(func(name string) bool {
		next := f.Step(m, name)
		if next.MayMatch() {
			first = f.entry(at, name, path.Join(below, name), next, depth)
		}
		return first == nil && len(f.found) <= bundle.MaxFiles
	})
	if first != nil {
		return first
	}
	return err
}

func (f *finder) entry(in *dir, name, where string, m bundle.Match, depth int) error {
	var info unix.Stat_t
	err := unix.Fstatat(in.fd(), name, &info, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) { // another program of the user has removed it
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT == unix.S_IFDIR {
		return f.find(in, name, where, m, depth+1)
	}
	switch {
	case !m.Whole:
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		f.leftOut, f.why = where, "is no regular file"
	case f.skip != nil && f.skip(where):
		f.leftOut, f.why = where, "is as it was before"
	default:
		err = f.usable(&info)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		f.found = append(f.found, where)
		f.bytes += info.Size
	}
	return nil
}

// nothing returns the error if no file matches.
func (f *finder) nothing(patterns []string) error {
	said := "no file matches " + strings.Join(patterns, ", ")
	if f.leftOut != "" {
		return fmt.Errorf("%s, except %s, which %s", said, f.leftOut, f.why)
	}
	return fmt.Errorf("%s; a pattern is relative to the directory in which the program begins", said)
}
