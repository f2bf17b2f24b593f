package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// Limits of a bundle: its number of files, and the bytes of these files together. The name of a file has at most
// MaxName bytes, because longer ones cannot be files.
const (
	MaxFiles = 10_000
	MaxBytes = 256 << 20
	MaxName  = 4 << 10
)

// A Packer packs files. The zero Packer has no files.
type Packer struct {
	packed bytes.Buffer
	zipped *gzip.Writer
	tar    *tar.Writer
	files  task.Files
}

// Add adds a file. It reads as many bytes from the file as size says, and returns an error if there are fewer. The
// permissions of others than the owner are those of the mode, too, so that a script stays executable for all.
func (p *Packer) Add(name string, mode fs.FileMode, size int64, from io.Reader) error {
	err := check(name)
	if err != nil {
		return err
	}
	if p.tar == nil {
		p.zipped, _ = gzip.NewWriterLevel(&p.packed, gzip.BestSpeed) // the level is valid
		p.tar = tar.NewWriter(p.zipped)
	}
	err = p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: size})
	if err != nil {
		return err
	}
	n, err := io.CopyN(p.tar, from, size)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: it shrank from %d to %d bytes while it was read", name, size, n)
	}
	p.files.Count++
	p.files.Bytes += size
	return err
}

// Bundle returns the bundle of the added files, and says how many they are. Without files, it returns "".
func (p *Packer) Bundle() (packed string, files task.Files, err error) {
	if p.tar == nil {
		return "", p.files, nil
	}
	err = errors.Join(p.tar.Close(), p.zipped.Close())
	return p.packed.String(), p.files, err
}

// Read calls a function for each file of a bundle, in order. The name is a path with slashes that leads to a place
// below the directory that it is joined to, and no file is at a place above another one. Who has packed the bundle may
// be hostile, so each file must match a pattern, and only a file whose whole name is a pattern is executable. The files
// may have at most so many bytes together. After an error, of the bundle or of the function, Read reads no other files.
func Read(packed string, patterns []string, most int64,
	each func(name string, mode fs.FileMode, content io.Reader) error,
) error {
	zipped, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return fmt.Errorf("it is no tar.gz: %w", err)
	}
	// headers and padding need at most 8 KiB for each file
	unpacked := &io.LimitedReader{R: zipped, N: most + (MaxFiles+1)*8<<10}
	r := &reader{
		tar: tar.NewReader(unpacked), names: newNames(patterns), most: most,
	}
	for {
		err := r.next(each)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Check reads a bundle of files that match the patterns, and says how many files it has.
func Check(packed string, patterns []string, most int64) (files task.Files, err error) {
	err = Read(packed, patterns, most, func(_ string, _ fs.FileMode, content io.Reader) error {
		n, err := io.Copy(io.Discard, content)
		files.Count++
		files.Bytes += n
		return err
	})
	return files, err
}

type reader struct {
	tar *tar.Reader
	names
	most int64 // how many bytes the other files may have
}

// names are the names of files that were accepted.
type names struct {
	patterns       []string
	asked          Matcher
	files, parents map[string]bool
}

func newNames(patterns []string) names {
	return names{patterns, NewMatcher(patterns), map[string]bool{}, map[string]bool{}}
}

// CheckNames checks that files may have these names, as Read does.
func CheckNames(patterns, files []string) error {
	n := newNames(patterns)
	for _, name := range files {
		if err := n.accept(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) next(each func(name string, mode fs.FileMode, content io.Reader) error) error {
	h, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	err = r.accept(h)
	if err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	if !slices.Contains(r.patterns, h.Name) {
		mode &^= 0o111
	}
	err = each(h.Name, mode, r.tar)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// accept refuses an entry that is no file below the directory, or one too many.
func (r *reader) accept(h *tar.Header) error {
	r.most -= h.Size
	switch {
	case check(h.Name) == nil && h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%.200q is no regular file", h.Name)
	case check(h.Name) == nil && r.most < 0:
		return errors.New("its files have more bytes than are allowed")
	}
	return r.names.accept(h.Name)
}

func (n *names) accept(name string) error {
	err := check(name)
	switch {
	case err != nil:
		return err
	case !n.asked.matches(name):
		return fmt.Errorf("%.200q matches none of the patterns %.1000s", name, strings.Join(n.patterns, ", "))
	case len(n.files) == MaxFiles:
		return fmt.Errorf("it has more than %d files", MaxFiles)
	case n.files[name] || n.parents[name]:
		return fmt.Errorf("%.200q is there twice", name)
	}
	n.files[name] = true
	for dir := path.Dir(name); dir != "." && !n.parents[dir]; dir = path.Dir(dir) {
		if n.files[dir] {
			return fmt.Errorf("%.200q is a file and a directory", dir)
		}
		n.parents[dir] = true
	}
	return nil
}

// check refuses a name that does not lead to a place below a directory, or that has more than one form.
func check(name string) error {
	if len(name) > MaxName || name == "." || path.Clean(name) != name || !filepath.IsLocal(name) ||
		strings.ContainsAny(name, "\x00\\") {
		return fmt.Errorf("%.200q is no name of a file below a directory", name)
	}
	return nil
}
