package program

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/firstline"
)

const (
	packScript     = "run.sh"
	reservedPrefix = ".tdf-" // prefix of names that workers reserve for their own files
	headBytes      = 256     // of run.sh, in which the kernel looks for an interpreter
)

// Default limits of workers (docs/programs.md, "Limits").
const (
	mostEntries  = 100_000 // files, directories and links
	mostUnpacked = 1 << 30 // bytes
	mostPath     = 4095    // bytes of a name with its directories, or of the target of a link
	mostName     = 255     // bytes of a name
)

// A packTree holds the entries of a program's archive by name.
type packTree struct {
	entries map[string]packEntry
	files   int // number of files and links
	bytes   int64
	head    []byte   // the beginning of run.sh
	leftOut []string // what isUsuallyLeftOut names
}

type packEntry struct {
	mode fs.FileMode // 0755 or 0644 for a file; without permissions for a directory or a link
	size int64
	link string // target of a link
}

func (t *packTree) names() []string { return slices.Sorted(maps.Keys(t.entries)) }

func readPackTree(root *os.Root) (*packTree, error) {
	ignored, err := readIgnore(root)
	if err != nil {
		return nil, err
	}
	t := &packTree{entries: map[string]packEntry{}}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case isUsuallyLeftOut(name):
			t.leftOut = append(t.leftOut, name)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case leftOut(name) || ignored.match(name, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err := t.add(root, name, d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := t.checkRunScript(); err != nil {
		return nil, err
	}
	if t.bytes > mostUnpacked {
		return nil, fmt.Errorf("the directory has %d bytes, but workers unpack at most %d; list files that the "+
			"program does not need in a .tdfignore", t.bytes, mostUnpacked)
	}
	return t, t.checkLinks()
}

// isUsuallyLeftOut reports whether a directory is made by tools in each copy of a program: an environment of Python has
// absolute paths, and a cache of Python would change the program's name with each run.
func isUsuallyLeftOut(name string) bool {
	base := path.Base(name)
	return base == ".venv" || base == "__pycache__"
}

func leftOut(name string) bool {
	base := path.Base(name)
	return base == ".git" || name == ignoreFile || strings.HasPrefix(base, reservedPrefix)
}

func (t *packTree) add(root *os.Root, name string, d fs.DirEntry) error {
	if err := checkPackName(name); err != nil {
		return err
	}
	if len(t.entries) == mostEntries {
		return fmt.Errorf("%w; list files that the program does not need in a .tdfignore", errTooManyEntries)
	}
	info, err := d.Info()
	if err == nil && name == packScript {
		info, err = root.Stat(name) // a link inside the directory stands for its file
	}
	if err != nil {
		return err
	}
	e := packEntry{mode: info.Mode().Type(), size: info.Size()}
	switch {
	case info.IsDir():
		t.entries[name] = e
		return nil
	case e.mode == fs.ModeSymlink:
		if e.link, err = root.Readlink(name); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		e.mode = 0o644
		if info.Mode()&0o111 != 0 || name == packScript {
			e.mode = 0o755
		}
		t.bytes += e.size
		if name == packScript {
			if err := t.readHead(root); err != nil {
				return err
			}
		}
	default:
		return errors.New("is a socket, a pipe or a device, which cannot be packed; remove it, or list it in a " +
			".tdfignore")
	}
	t.files++
	t.entries[name] = e
	return nil
}

// readHead reads the beginning of run.sh.
func (t *packTree) readHead(root *os.Root) error {
	f, err := root.Open(packScript)
	if err != nil {
		return err
	}
	defer f.Close()
	t.head, err = io.ReadAll(io.LimitReader(f, headBytes))
	return err
}

var errTooManyEntries = fmt.Errorf("the program has more than the %d files and directories that workers unpack",
	mostEntries)

func checkPackName(name string) error {
	long := func(part string) bool { return len(part) > mostName }
	if len(name) > mostPath || slices.ContainsFunc(strings.Split(name, "/"), long) {
		return fmt.Errorf("workers unpack no name of more than %d bytes, or %d with its directories", mostName,
			mostPath)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`) {
		return fmt.Errorf("the name %.100q cannot be packed: a name must be UTF-8 without control characters and "+
			"backslashes", path.Base(name))
	}
	return nil
}

func (t *packTree) checkRunScript() error {
	e, ok := t.entries[packScript]
	switch {
	case !ok && t.hasRunScriptBelow() != "":
		return fmt.Errorf("the directory contains no run.sh; did you mean its subdirectory %s?", t.hasRunScriptBelow())
	case !ok:
		return errors.New("the directory contains no run.sh; workers run ./run.sh with the task's input")
	case !e.mode.IsRegular():
		return errors.New("run.sh is not a file")
	case e.size == 0:
		return errors.New("run.sh is empty")
	}
	return firstline.Check(t.head)
}

func (t *packTree) hasRunScriptBelow() string {
	for _, name := range t.names() {
		if path.Base(name) == packScript && strings.Count(name, "/") == 1 {
			return path.Dir(name)
		}
	}
	return ""
}

// checkLinks refuses links whose targets are not in the archive.
func (t *packTree) checkLinks() error {
	for _, name := range t.names() {
		e := t.entries[name]
		if e.mode != fs.ModeSymlink {
			continue
		}
		err := t.follow(name)
		if err == nil && !filepath.IsLocal(path.Join(path.Dir(name), e.link)) {
			err = errLeadsOut // workers refuse a link whose text leads out of the directory
		}
		if len(e.link) > mostPath {
			err = fmt.Errorf("has more than %d bytes", mostPath)
		}
		if err != nil {
			return fmt.Errorf("%.100s is a symbolic link to %.100q, which %w", name, e.link, err)
		}
	}
	return nil
}

var errLeadsOut = errors.New("leads out of the directory")

// maxLinks is the maximum number of links that Linux follows in one path.
const maxLinks = 40

// follow checks that a path leads to an entry of the archive. It resolves the path as the operating system does: it
// replaces a link anywhere in the path by the link's target.
func (t *packTree) follow(name string) error {
	done, todo := "", strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		if part == ".." && done == "" {
			return errLeadsOut
		}
		at := path.Join(done, part)
		if at == "." {
			at = ""
		}
		e, ok := t.entries[at]
		switch {
		case at == "" || ok && e.mode.IsDir():
			done = at
		case !ok:
			return errors.New("does not exist or is not part of the archive")
		case e.mode != fs.ModeSymlink:
			if len(todo) > 0 {
				return errors.New("uses a file as a directory")
			}
			done = at
		default:
			links++
			if links > maxLinks {
				return errors.New("leads in a circle")
			}
			if filepath.IsAbs(e.link) && at != name {
				return fmt.Errorf("leads to %s, a link to the absolute path %q; list it in a .tdfignore, or use a "+
					"relative path", at, e.link)
			}
			if filepath.IsAbs(e.link) {
				return errors.New("is an absolute path; list the link in a .tdfignore, or use a relative path")
			}
			todo = append(strings.Split(e.link, "/"), todo...)
		}
	}
	return nil
}

// header returns the header of the entry in an archive. It has no times and owners.
func (e packEntry) header(name string) *tar.Header {
	switch {
	case e.mode.IsDir():
		return &tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir}
	case e.mode == fs.ModeSymlink:
		return &tar.Header{Name: name, Mode: 0o777, Typeflag: tar.TypeSymlink, Linkname: e.link}
	}
	return &tar.Header{Name: name, Mode: int64(e.mode), Typeflag: tar.TypeReg, Size: e.size}
}

// write adds the entry to an archive.
func (e packEntry) write(w *tar.Writer, root *os.Root, name string) error {
	if err := w.WriteHeader(e.header(name)); err != nil || !e.mode.IsRegular() {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(w, f)
	if errors.Is(err, tar.ErrWriteTooLong) || err == nil && n != e.size {
		return fmt.Errorf("%s changed while Pack read it; try again", name)
	}
	return err
}

// largest returns the names and sizes of the three largest files.
func (t *packTree) largest() string {
	names := slices.SortedStableFunc(slices.Values(t.names()), func(a, b string) int {
		return cmp.Compare(t.entries[b].size, t.entries[a].size)
	})
	names = slices.DeleteFunc(names, func(name string) bool { return !t.entries[name].mode.IsRegular() })
	var all []string
	for _, name := range names[:min(3, len(names))] {
		all = append(all, fmt.Sprintf("%s (%d bytes)", name, t.entries[name].size))
	}
	return strings.Join(all, ", ")
}
