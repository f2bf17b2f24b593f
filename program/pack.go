package program

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/programs"
)

// A Packed is an archive of a program's directory.
type Packed struct {
	// the directory's name and the first digits of the archive's SHA-256; if files change, the name changes
	Name    string
	Source  string // the program's source after it is stored: redis:SHA256
	Archive []byte
	Files   int      // number of files and links in the archive
	Bytes   int64    // total size of the unpacked files
	LeftOut []string // directories of Python's tools, which are no part of a program
}

// Pack makes an archive of a program's directory (docs/tdf.md, "Programs"). The directory must contain run.sh.
//
// The same content gives the same archive. Pack stores no times, owners and permissions, except whether a file is
// executable. It keeps symbolic links that stay inside the directory. It omits .git, .venv, __pycache__, the files that
// match .tdfignore, and the names that workers reserve. If the directory contains a file that workers could not unpack,
// the error names this file. The archive can have at most 64 MiB.
func Pack(dir string) (Packed, error) {
	p, err := pack(dir)
	if err != nil {
		return Packed{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	return p, nil
}

func pack(dir string) (Packed, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Packed{}, err
	}
	defer root.Close()
	t, err := readPackTree(root)
	if err != nil {
		return Packed{}, err
	}
	archive, err := t.archive(root)
	if err != nil {
		return Packed{}, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return Packed{}, err
	}
	return newPacked(filepath.Base(dir), archive, t), nil
}

// newPacked returns an archive with its name and source.
func newPacked(base string, archive []byte, t *packTree) Packed {
	sum := sha256.Sum256(archive)
	hash := hex.EncodeToString(sum[:])
	return Packed{
		Name: NameAfter(base) + "-" + hash[:hashDigits], Source: task.SchemeRedis + ":" + hash,
		Archive: archive, Files: t.files, Bytes: t.bytes, LeftOut: t.leftOut,
	}
}

const hashDigits = 8

// NameAfter derives a program's name from the directory's name. The result needs no quotes in a shell.
func NameAfter(base string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(base, "-"))
	name = strings.Trim(name, ".-")
	for len(name) > task.MaxName-hashDigits-1 {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	if name == "" {
		return "program"
	}
	return name
}

func (t *packTree) archive(root *os.Root) ([]byte, error) {
	archive, err := compressed(func(w *tar.Writer) error {
		for _, name := range t.names() {
			if err := t.entries[name].write(w, root, name); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errTooLarge) {
		err = fmt.Errorf("%w (%d unpacked), too many to store in Redis; the largest files are %s; "+
			"list files that the program does not need in a .tdfignore, or use an http or rsync source",
			err, t.bytes, t.largest())
	}
	return archive, err
}

// compressed returns the archive whose entries write writes.
func compressed(write func(*tar.Writer) error) ([]byte, error) {
	var out boundedBuffer
	c, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1)) // several threads would not always give the same bytes
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(c)
	if err := write(w); err != nil {
		c.Close()
		return nil, err
	}
	if err := errors.Join(w.Close(), c.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var errTooLarge = fmt.Errorf("the archive has more than %d bytes", programs.MaxBytes)

// boundedBuffer is a buffer that refuses more than programs.MaxBytes bytes.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > programs.MaxBytes {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}
