package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unpack unpacks an archive into the empty directory dir. After an error, the caller must remove the files in dir.
func unpack(ctx context.Context, archive, dir string, limits Limits, compressions []Compression) (err error) {
	// unpack recovers from panics, because hostile bytes may make a decompressor panic.
	defer func() {
		if p := recover(); p != nil {
			err = panicked{p}
		}
	}()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, min(tarBlock, info.Size()))
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	kind, err := identify(head, compressions)
	if err != nil {
		return err
	}
	u, err := newUnpacker(ctx, dir, limits)
	if err != nil {
		return err
	}
	defer u.root.Close()
	if kind.zip {
		err = u.zip(f, info.Size())
	} else {
		err = u.tar(kind.comp, f)
	}
	if err != nil {
		return err
	}
	return u.finish()
}

type panicked struct{ value any }

func (p panicked) Error() string {
	return fmt.Sprintf("the archive is damaged: the unpacker failed (%v)", p.value)
}

// An unpacker writes the entries of one archive. It writes only through root, which refuses paths outside the
// directory.
type unpacker struct {
	ctx    context.Context
	root   *os.Root
	budget budget
	dirs   map[string]bool // existing directories
	links  []link          // symbolic links, which are created at the end
}

func newUnpacker(ctx context.Context, dir string, limits Limits) (*unpacker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &unpacker{
		ctx: ctx, root: root, dirs: map[string]bool{".": true}, budget: budget{limits: limits.withDefaults()},
	}, nil
}

// An entry is an entry of a tar or zip. Its name may be invalid.
type entry struct {
	name string
	mode fs.FileMode
	hard bool   // whether the entry is a hard link
	link string // target of a hard or symbolic link
	open func() (io.ReadCloser, error)
}

// add unpacks an entry. Its error names the entry.
func (u *unpacker) add(e entry) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	if err := u.write(e); err != nil {
		return &entryError{e.name, err}
	}
	return nil
}

func (u *unpacker) write(e entry) error {
	if err := u.budget.addEntry(e.name, e.link); err != nil {
		return err
	}
	name, err := localName(e.name)
	if err != nil {
		return err
	}
	if e.mode.IsDir() && !e.hard {
		return u.mkdir(name)
	}
	if err := u.parents(name); err != nil {
		return err
	}
	switch {
	case e.hard:
		return u.hardLink(name, e.link)
	case e.mode&fs.ModeSymlink != 0:
		u.links = append(u.links, link{name, e.link})
		return checkTarget(name, e.link)
	case e.mode.IsRegular():
		return u.file(name, e)
	}
	return fmt.Errorf("is a %s; only files, directories and links are unpacked", kind(e.mode))
}

func (u *unpacker) mkdir(name string) error {
	if u.dirs[name] {
		return nil
	}
	if err := u.parents(name); err != nil {
		return err
	}
	u.dirs[name] = true
	return explainExist(u.root.Mkdir(name, 0o755))
}

// parents creates the missing directories above name. Each of them counts as an entry of the archive.
func (u *unpacker) parents(name string) error {
	dir := path.Dir(name)
	if u.dirs[dir] {
		return nil
	}
	if err := u.budget.addEntry(dir); err != nil {
		return err
	}
	return u.mkdir(dir)
}

func (u *unpacker) file(name string, e entry) (err error) {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, permissions(e.mode))
	if err != nil {
		return explainExist(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := e.open()
	if err != nil {
		return explainDamage(err)
	}
	defer r.Close()
	_, err = io.Copy(&budgetWriter{f, &u.budget}, sourceReader{contextReader{u.ctx, r}})
	return err
}

// permissions returns 0755 for an executable file, and 0644 for any other file. It removes setuid, setgid and sticky
// bits.
func permissions(m fs.FileMode) fs.FileMode {
	if m&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

func (u *unpacker) finish() error {
	if u.budget.entries == 0 {
		return errors.New("the archive is empty")
	}
	return u.makeLinks()
}

// budgetWriter counts bytes before it writes them, so that it writes nothing above a limit.
type budgetWriter struct {
	w      io.Writer
	budget *budget
}

func (b *budgetWriter) Write(p []byte) (int, error) {
	if err := b.budget.addBytes(len(p)); err != nil {
		return 0, err
	}
	return b.w.Write(p)
}

// sourceReader marks read errors, so that they can be distinguished from write errors.
type sourceReader struct{ r io.Reader }

func (s sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = explainDamage(err)
	}
	return n, err
}

// An entryError is an error about an entry of an archive.
type entryError struct {
	name string
	err  error
}

func (e *entryError) Error() string { return fmt.Sprintf("entry %q: %v", shorten(e.name), e.err) }
func (e *entryError) Unwrap() error { return e.err }

func shorten(s string) string {
	if len(s) > lineRunes {
		return s[:lineRunes] + "…"
	}
	return s
}

func explainExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return errors.New("is in the archive twice, or conflicts with another entry")
	}
	return err
}

// Linux's limits for paths and names.
const (
	maxPathBytes = 4095
	maxNameBytes = 255
)

// localName returns the clean form of an entry's name. "." is the top of the archive. localName returns an error if the
// name is invalid, or if its meaning depends on the system.
func localName(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("has no name")
	case len(name) > maxPathBytes:
		return "", fmt.Errorf("has a name of %d bytes (at most %d)", len(name), maxPathBytes)
	case !utf8.ValidString(name):
		return "", errors.New("has a name that is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", errors.New("has a control character in its name")
	case strings.Contains(name, `\`):
		return "", errors.New("has a backslash in its name")
	case strings.HasPrefix(name, "/"):
		return "", errors.New("has an absolute name")
	}
	parts := strings.Split(name, "/")
	if slices.Contains(parts, "..") {
		return "", errors.New("has .. in its name")
	}
	if slices.ContainsFunc(parts, func(p string) bool { return len(p) > maxNameBytes }) {
		return "", fmt.Errorf("has a part of more than %d bytes in its name", maxNameBytes)
	}
	return path.Clean(name), nil
}
