package record

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// Texts are the contents of a round's two files, as a worker reports them.
type Texts struct {
	Output, Error string
	// lengths of Output and Error, or more if these are cut: then usually the sizes of the files
	OutputBytes, ErrorBytes int64
}

// Read returns the content of both files, with the values of secrets masked. If a file has more than limit bytes, Read
// returns only its beginning and its end. A line between them says how many bytes are missing, and where the whole file
// is: the worker and the path. A secret that lies across such a cut is not masked.
//
// The files may change during the call. Each byte that Read returns was in the file at some time during the call.
func (r *Record) Read(limit int64, worker string, s *secrets.Secrets) (Texts, error) {
	var t Texts
	var err error
	if t.Output, t.OutputBytes, err = read(&r.outputs[0], max(limit, 0), worker, s); err != nil {
		return t, fmt.Errorf("reading stdout: %w", err)
	}
	if t.Error, t.ErrorBytes, err = read(&r.outputs[1], max(limit, 0), worker, s); err != nil {
		return t, fmt.Errorf("reading stderr: %w", err)
	}
	return t, nil
}

func read(f *output, limit int64, worker string, s *secrets.Secrets) (string, int64, error) {
	size, _, err := f.state()
	if err != nil {
		return "", 0, err
	}
	if size <= limit {
		b, err := appendPart(make([]byte, 0, size), f, 0, size, s)
		return text(b), int64(len(b)), err // less than size if secrets are masked
	}
	note := leftOut(f.keptAt(), size-limit, worker)
	b := make([]byte, 0, limit+int64(len(note))+1)
	if b, err = appendPart(b, f, 0, limit-limit/2, s); err != nil {
		return "", size, err
	}
	b, err = appendPart(appendNote(b, note), f, size-limit/2, size, s)
	return text(b), max(size, int64(len(b))+1), err // the note may be longer than what is left out
}

// appendNote appends a line about missing bytes.
func appendNote(b []byte, note string) []byte {
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return append(b, note...)
}

// Shorten returns a text of which there is no file as [Record.Read] returns a file: if it has more than limit bytes,
// only its beginning and its end.
func Shorten(whole string, limit int) string {
	if len(whole) <= limit {
		return whole
	}
	note := fmt.Sprintf("[%d bytes are left out here; they are lost, because the text is longer than %d bytes]\n",
		len(whole)-limit, limit)
	return string(append(appendNote([]byte(whole[:limit-limit/2]), note), whole[len(whole)-limit/2:]...))
}

// leftOut returns the line about missing bytes. It says that they are lost if the file could not be kept.
func leftOut(place string, n int64, worker string) string {
	if place == "" {
		return fmt.Sprintf("[%d bytes are left out here; they are lost: worker %s could not keep the file]\n", n,
			worker)
	}
	return fmt.Sprintf("[%d bytes are left out here; the whole output is on worker %s in %s]\n", n, worker, place)
}

// appendPart appends the content of f between two offsets, masked. It appends less if f has become shorter. b needs
// free room for the part.
func appendPart(b []byte, f io.ReaderAt, from, to int64, s *secrets.Secrets) ([]byte, error) {
	part := b[len(b) : len(b)+int(to-from)]
	n, err := f.ReadAt(part, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return b, err
	}
	return append(b, s.Mask(text(part[:n]))...), nil
}

// text returns b as a string without a copy, since b may be large. The caller must not change b afterwards.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
